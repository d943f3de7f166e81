"""Who someone is: accounts, tokens, and when they last proved it."""
