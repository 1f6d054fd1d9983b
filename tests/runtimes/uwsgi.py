"""uWSGI as the package pyuwsgi has it: a module, made ready for many versions of Python, that needs no compiler."""

import pyuwsgi

if __name__ == "__main__":
    pyuwsgi.run()
