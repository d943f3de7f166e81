"""One answer of one person to many cases or requests for approval, as a stored job.

A job is prepared (`jobs.create`: what is selected is frozen into items), looked at (`preview`), started, and worked
through by whichever worker is free (`work`), each item by the function that decides single answers. After a crash at
any point each item is pending and unanswered, or has its result; the job goes on with the next pending one.
"""
