"""What an image's builder stages run: collect a small root file system, and list what is in it.

Purpose: the final stage starts from nothing and holds only what a program opens, so that it has no shell, no package
manager and no set-uid program. Invariant: standard library only, and every output depends on the files alone.
"""
