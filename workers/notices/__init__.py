"""Sends notices. What a notice is and when it is due is the business of `approvals`; here it takes form and leaves."""
