"""Hook of PyInstaller, which runs it when an application imports mintage."""

from mintage._pyinstaller import data_files, hidden_imports

hiddenimports = hidden_imports()
datas = data_files()
