"""What agents carry out themselves: steps under a fence, tools of their own, and their turn."""
