"""The processes of ``mintage serve``: from the checks at the start to a graceful stop."""
