"""The tool chain for programs of users: compiles C and C++ sources for the simulated machine."""

from durasim.programs.toolchain import ToolchainError, build, build_stamp, compile_program

__all__ = ["ToolchainError", "build", "build_stamp", "compile_program"]
