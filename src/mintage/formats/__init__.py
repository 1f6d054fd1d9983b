"""What an ID is: its scheme, layout, texts, storage forms, and where its fields lie."""
