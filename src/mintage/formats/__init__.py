"""The domain of IDs: schemes, layouts, texts, storage forms, and the bit ranges of fields."""
