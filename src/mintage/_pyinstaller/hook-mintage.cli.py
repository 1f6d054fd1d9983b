"""Hook of PyInstaller, which runs it when an application imports the command line, as the command ``mintage`` does."""

from mintage._pyinstaller import command_modules

hiddenimports = command_modules()
