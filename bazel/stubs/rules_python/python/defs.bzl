"""The native rules under the names of rules_python, which newer Bazel has in MODULE.bazel."""

py_binary = native.py_binary
py_library = native.py_library
py_test = native.py_test
