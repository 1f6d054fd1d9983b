"""Read by gunicorn: each worker leases its node numbers as it starts, so that no request waits for them."""

from contextlib import suppress


def post_worker_init(worker):
    from mintage import sno, snowflake, ulid
    from mintage.errors import TransientError

    for scheme in (snowflake, sno, ulid):
        # A store that is away is asked again by the first request.
        with suppress(TransientError):
            scheme.new()
