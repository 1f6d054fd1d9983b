-- One integer a request, as a client of idalloc asks for it; prints what came of it as JSON.
wrk.method = "POST"
wrk.body = '{"serviceName":"orders","count":1}'
wrk.headers["Content-Type"] = "application/json"

function done(summary, latency)
  local wrong = summary.errors
  io.write(string.format('\n{"requests": %d, "microseconds": %d, "errors": %d, "p99_us": %d}\n', summary.requests, summary.duration,
    wrong.connect + wrong.read + wrong.write + wrong.status + wrong.timeout, latency:percentile(99)))
end
