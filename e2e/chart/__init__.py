"""The product installed by its chart in a cluster that runs pods, as the tests of the chart drive it.

Invariant: everything is done with the binaries that people use, kubectl and Helm, and every wait has a deadline.
"""
