"""uWSGI from the package pyuwsgi: a compiled module for many versions of Python."""

import pyuwsgi

if __name__ == "__main__":
    pyuwsgi.run()
