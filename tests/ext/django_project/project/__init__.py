"""A project whose tables all have IDs of mintage; ``test_django.py`` copies it and runs its promises."""
