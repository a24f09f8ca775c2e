"""Other libraries behind one small protocol. Every file here runs with numpy, scipy and that library alone."""
