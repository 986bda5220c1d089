"""The analysis: speedups, intervals, costs, predictions and advice.

In: runs, their audit, and timed forward passes.
Out: an `Analysis`, whose tables hold every number that is shown.
"""
