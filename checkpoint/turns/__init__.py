"""What happens inside one turn of a worker: claim, prepare, record, conclude."""
