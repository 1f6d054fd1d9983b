"""A project whose every table has IDs of ours: that of ``test_django.py``, which copies it and runs its promises."""
