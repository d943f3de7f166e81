"""The console in a real browser: Debian's Chromium through Playwright."""
