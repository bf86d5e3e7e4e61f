"""What lies in ELF files, archives of objects and NVIDIA fat binaries, read without running any tool.

Every file here is hostile input: offsets, sizes and counts are checked before they are followed, work and memory are
bounded, and what lies about itself is `MalformedError`, never a crash.
"""
