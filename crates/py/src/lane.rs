//! `mintage._core.lane`: the hot paths of the service. A session reads the bytes of a connection and answers the requests for
//! which enough integers are buffered. It hands the first other request to Python, and keeps the bytes after it.

use crate::hot::{self, Mints};
use crate::locks::locked;
use crate::sequence::{Sequence, as_range};
use crate::values;
use mintage_core::buffer::Segment;
use mintage_core::units::UnixNs;
use mintage_wire::bucket::Bucket as Rate;
use mintage_wire::http::{self, Connection, ResponseContext, Route};
use mintage_wire::resp::{self, Fault, Hot};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Instant;

/// The bytes of requests and replies that a connection gets in one turn, before other connections.
const MAX_REPLY_BATCH: usize = 64 * 1024;
/// The most bytes of an integer in an answer, with quotes and comma.
const INTEGER: usize = 22;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A limit of requests: ``rate`` a second in the long run, ``burst`` at once.
///
/// Bucket(rate, burst)
#[pyclass(frozen, from_py_object, module = "mintage._core.lane")]
#[derive(Clone)]
pub struct Bucket(Arc<Rate>);

impl Bucket {
    fn passes(&self) -> Result<(), u64> {
        self.0.take(START.elapsed().as_nanos() as u64)
    }
}

fn passes(bucket: Option<&Bucket>) -> bool {
    bucket.is_none_or(|bucket| bucket.passes().is_ok())
}

#[pymethods]
impl Bucket {
    #[new]
    fn py_new(rate: f64, burst: u32) -> Self {
        Self(Arc::new(Rate::new(rate, burst)))
    }

    /// Admit one request, and return 0; or return the milliseconds after which to try again.
    fn take(&self) -> u64 {
        self.passes().map_or_else(|ns| ns.div_ceil(1_000_000), |()| 0)
    }
}

/// The operations that the hot paths count.
#[derive(Clone, Copy)]
enum Operation {
    Alloc,
    Next,
    Incr,
    IncrBy,
}

impl Operation {
    const NAMES: [&str; 4] = ["alloc", "next", "incr", "incrby"];
}

/// The counts of requests and integers by operation.
#[derive(Default)]
struct Counts([(AtomicU64, AtomicU64); 4]);

impl Counts {
    /// Counts a request.
    #[inline(always)]
    fn count(&self, operation: Operation, integers: u64) {
        let (requests, given) = &self.0[operation as usize];
        hot::count(requests, 1);
        hot::count(given, integers);
    }
}

/// A namespace that is served, with its counts by the name of the key.
struct Served {
    namespace: Box<str>,
    sequence: Py<Sequence>,
    bucket: Option<Bucket>,
    counts: Mutex<HashMap<Arc<str>, Arc<Counts>>>,
    /// One above the highest integer that was handed out; 0 before the first.
    end: AtomicU64,
}

impl Served {
    /// The counts of a key.
    fn counts(&self, key: &Arc<str>) -> Arc<Counts> {
        locked(&self.counts).entry(key.clone()).or_default().clone()
    }

    /// Notes an integer that is handed out, as the last of its request.
    #[inline(always)]
    fn note(&self, last: u64) {
        hot::raise(&self.end, last + 1);
    }
}

/// The served namespaces, and the state that all connections share.
///
/// Lane(*, open, limit, most, trace_header)
///
/// ``open`` says that no keys are needed, ``limit`` is the most bytes of one request, ``most`` the most integers.
#[pyclass(frozen, module = "mintage._core.lane")]
pub struct Lane {
    open: bool,
    limit: usize,
    most: u32,
    trace_header: String,
    namespaces: Mutex<HashMap<Box<[u8]>, Arc<Served>>>,
    /// Grows with each change of the namespaces.
    version: AtomicU64,
    draining: AtomicBool,
    traces: AtomicU64,
    date: Mutex<(i64, String)>,
}

impl Lane {
    fn served(&self, namespace: &str) -> PyResult<Arc<Served>> {
        locked(&self.namespaces)
            .get(namespace.as_bytes())
            .cloned()
            .ok_or_else(|| PyKeyError::new_err(namespace.to_owned()))
    }

    /// A trace id of 32 hexadecimal digits. Two of one process never match, and two of a fleet only by chance.
    fn new_trace(&self) -> String {
        let count = self.traces.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        // Two rounds of splitmix64, so that consecutive numbers look unrelated.
        let mix = |mut z: u64| {
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        format!("{:016x}{:016x}", mix(count), mix(!count))
    }

    /// Writes the answer to a hot request; returns false if Python must answer.
    fn answer(
        &self,
        py: Python<'_>,
        served: &Served,
        counts: &Counts,
        request: &http::Request<'_>,
        reply: &mut Vec<u8>,
    ) -> PyResult<bool> {
        let mut left = request.count;
        let mut parts: Vec<Segment> = Vec::with_capacity(1);
        let sequence = served.sequence.get();
        if left == 1 {
            parts.extend(sequence.fast(py, 0).map(|first| Segment { first, count: 1, stride: 1 }));
            left -= parts.len() as u32;
        }
        if left > 0 && sequence.level() < u64::from(left) {
            return Ok(false);
        }
        while left > 0 {
            let Some(part) = sequence.take_buffered(py, left)? else { return Ok(false) };
            left -= part.count;
            parts.push(part);
        }
        let operation = match request.route {
            Route::Alloc => Operation::Alloc,
            Route::Next => Operation::Next,
        };
        counts.count(operation, request.count.into());
        if let Some(part) = parts.last() {
            served.note(last(*part));
        }
        let made = request.trace.is_none().then(|| self.new_trace());
        let trace = made.as_ref().map_or_else(|| request.trace.unwrap_or_default(), |made| made.as_bytes());
        let now_ms = hot::now().0;
        let mut date = locked(&self.date);
        if date.0 != now_ms / 1000 {
            *date = (now_ms / 1000, http_date(now_ms / 1000));
        }
        let connection = request.connection;
        let answer = ResponseContext { date: &date.1, trace_header: &self.trace_header, trace, connection, now_ms };
        http::write_response(
            reply,
            request.route,
            request.namespace,
            parts.iter().flat_map(|&part| integers(part)),
            &answer,
        );
        Ok(true)
    }
}

fn last(part: Segment) -> u64 {
    part.first + u64::from(part.count - 1) * u64::from(part.stride)
}

fn integers(part: Segment) -> impl Iterator<Item = u64> {
    (0..u64::from(part.count)).map(move |at| part.first + at * u64::from(part.stride))
}

/// Return the value of the header Date for a Unix time in seconds, or an empty text beyond the year 9999.
///
/// <https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7>
#[pyfunction]
pub fn http_date(seconds: i64) -> String {
    let Some(at) = UnixNs(i128::from(seconds) * UnixNs::PER_SECOND).utc() else { return String::new() };
    at.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Return True if a client's trace id is echoed: it is 1 to 128 letters, digits and ``. _ : / + = -``.
#[pyfunction]
pub fn is_trace(value: &[u8]) -> bool {
    http::is_trace_id(value)
}

#[pymethods]
impl Lane {
    #[new]
    #[pyo3(signature = (*, open, limit, most, trace_header))]
    fn py_new(py: Python<'_>, open: bool, limit: usize, most: u32, trace_header: String) -> PyResult<Self> {
        Ok(Self {
            open,
            limit,
            most,
            trace_header: trace_header.to_ascii_lowercase(),
            namespaces: Mutex::default(),
            version: AtomicU64::new(1),
            draining: AtomicBool::new(false),
            traces: AtomicU64::new(values::random(py)?),
            date: Mutex::new((-1, String::new())),
        })
    }

    /// Serve a namespace from now on, at most as often as its bucket allows.
    #[pyo3(signature = (namespace, sequence, bucket = None))]
    fn serve(&self, namespace: &str, sequence: Py<Sequence>, bucket: Option<Bucket>) {
        let served =
            Served { namespace: namespace.into(), sequence, bucket, counts: Mutex::default(), end: AtomicU64::new(0) };
        locked(&self.namespaces).insert(namespace.as_bytes().into(), Arc::new(served));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Take up to ``n`` buffered integers: a list, empty if none are buffered.
    fn take<'py>(&self, py: Python<'py>, namespace: &str, n: u32) -> PyResult<Bound<'py, PyList>> {
        let served = self.served(namespace)?;
        let mut taken = Vec::new();
        while let left @ 1.. = n - taken.len() as u32 {
            let Some(part) = served.sequence.get().take_buffered(py, left)? else { break };
            taken.extend(integers(part));
        }
        PyList::new(py, taken)
    }

    /// Take ``n`` buffered integers in a row: a range, or None if too few are buffered.
    fn row<'py>(&self, py: Python<'py>, namespace: &str, n: u32) -> PyResult<Option<Bound<'py, PyAny>>> {
        let row = self.served(namespace)?.sequence.get().take_row(py, n)?;
        row.map(|row| as_range(py, row.first, row.count.into(), row.stride.into())).transpose()
    }

    /// Return True if a next segment of a namespace is buffered.
    fn has_next(&self, namespace: &str) -> PyResult<bool> {
        Ok(self.served(namespace)?.sequence.get().has_next())
    }

    /// Return the client that fetches the segments of a namespace.
    fn segment_client(&self, py: Python<'_>, namespace: &str) -> PyResult<Py<PyAny>> {
        Ok(self.served(namespace)?.sequence.get().client().clone_ref(py))
    }

    /// Note an integer that was handed out elsewhere.
    fn note(&self, namespace: &str, integer: u64) -> PyResult<()> {
        self.served(namespace).map(|served| served.note(integer))
    }

    /// Return the highest integer of a namespace that was handed out; None before the first, and for one that is not served.
    fn last(&self, namespace: &str) -> Option<u64> {
        locked(&self.namespaces).get(namespace.as_bytes())?.end.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Answer no HTTP request from now on: the HTTP server ends the connections.
    fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Return the counts of the requests that were answered since the start: (namespace, name of the key, operation,
    /// requests, integers).
    fn counts(&self) -> Vec<(String, String, &'static str, u64, u64)> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut rows = Vec::new();
        for served in locked(&self.namespaces).values() {
            for (key, counts) in locked(&served.counts).iter() {
                let used = counts.0.iter().zip(Operation::NAMES).filter(|((requests, _), _)| read(requests) > 0);
                rows.extend(used.map(|((requests, given), name)| {
                    (served.namespace.to_string(), key.to_string(), name, read(requests), read(given))
                }));
            }
        }
        rows
    }
}

/// The namespaces that a connection may use without asking Python again, by the name of its key.
struct Access {
    all: bool,
    key: Arc<str>,
    names: HashSet<Box<str>>,
    bucket: Option<Bucket>,
    last: Option<(Arc<Served>, Arc<Counts>)>,
    version: u64,
}

impl Access {
    fn new(all: bool, key: &str, bucket: Option<Bucket>) -> Self {
        Self { all, key: key.into(), names: HashSet::new(), bucket, last: None, version: 0 }
    }

    /// The namespace of a request and its counts, if this connection may use it now; `None` hands the request to Python. A caller that then
    /// cannot serve the request calls [`Access::put_back`]: Python admits it once more.
    #[inline(always)]
    fn served(&mut self, lane: &Lane, namespace: &[u8]) -> Option<(&Served, &Counts)> {
        let version = lane.version.load(Ordering::Acquire);
        let is_last = self.version == version
            && self.last.as_ref().is_some_and(|(last, _)| last.namespace.as_bytes() == namespace);
        if !is_last {
            let served = locked(&lane.namespaces).get(namespace)?.clone();
            if !self.all && !self.names.contains(&served.namespace) {
                return None;
            }
            let counts = served.counts(&self.key);
            self.last = Some((served, counts));
            self.version = version;
        }
        let (served, counts) = self.last.as_ref()?;
        if !passes(self.bucket.as_ref()) {
            return None;
        }
        if !passes(served.bucket.as_ref()) {
            self.bucket.iter().for_each(|bucket| bucket.0.put_back());
            return None;
        }
        Some((served, counts))
    }

    /// Takes back the admission of the last request.
    fn put_back(&self) {
        let buckets = [self.bucket.as_ref(), self.last.as_ref().and_then(|(served, _)| served.bucket.as_ref())];
        buckets.into_iter().flatten().for_each(|bucket| bucket.0.put_back());
    }

    /// Lets the connection use a namespace that is served; keeps no other name that a client sends.
    fn allow(&mut self, lane: &Lane, namespace: &str) {
        if locked(&lane.namespaces).contains_key(namespace.as_bytes()) {
            self.names.insert(namespace.into());
        }
    }
}

/// A connection of the Redis protocol.
///
/// RespSession(lane)
#[pyclass(module = "mintage._core.lane")]
pub struct RespSession {
    lane: Py<Lane>,
    access: Access,
    /// Bytes that were read; those before `from` are processed.
    pending: Vec<u8>,
    from: usize,
    /// True between MULTI and EXEC: Python gets all commands.
    is_queueing: bool,
}

impl RespSession {
    fn run<'py>(&mut self, py: Python<'py>, fresh: Option<&[u8]>) -> PyResult<Bound<'py, PyAny>> {
        let mut kept = std::mem::take(&mut self.pending);
        let mut at = std::mem::take(&mut self.from);
        let is_fresh = kept.len() == at;
        let bytes = match fresh {
            Some(fresh) if is_fresh => {
                at = 0;
                fresh
            }
            fresh => {
                kept.extend_from_slice(fresh.unwrap_or_default());
                &kept
            }
        };
        let lane = self.lane.get();
        let start = at;
        let mut reply = Vec::with_capacity((bytes.len() - at).min(MAX_REPLY_BATCH));
        let stop = loop {
            if at - start + reply.len() >= MAX_REPLY_BATCH && at < bytes.len() {
                break Some(py.None().into_bound(py));
            }
            let (words, used) = match resp::parse(&bytes[at..], lane.limit) {
                resp::Parsed::Command(words, used) => (words, used),
                resp::Parsed::Incomplete => break None,
                resp::Parsed::Invalid(fault) => {
                    at = bytes.len();
                    break Some(explain(fault).into_pyobject(py)?.into_any());
                }
            };
            at += used;
            if words.is_empty() || !self.is_queueing && command(py, lane, &mut self.access, &words, &mut reply)? {
                continue;
            }
            break Some(PyList::new(py, words.iter().map(|word| PyBytes::new(py, word)))?.into_any());
        };
        if at < bytes.len() {
            // Python's answers may interrupt this often, so the bytes move to the front only after half of them is
            // done.
            let is_ours = std::ptr::eq(bytes, kept.as_slice());
            (self.pending, self.from) =
                if is_ours && at <= kept.len() / 2 { (kept, at) } else { (bytes[at..].to_vec(), 0) };
        }
        let reply = PyBytes::new(py, &reply).into_any();
        match stop {
            None => Ok(reply),
            Some(stop) => PyTuple::new(py, [reply, stop]).map(Bound::into_any),
        }
    }
}

/// Answers a command; returns false if Python must answer.
#[inline(always)]
fn command(py: Python<'_>, lane: &Lane, access: &mut Access, words: &[&[u8]], reply: &mut Vec<u8>) -> PyResult<bool> {
    match resp::hot(words) {
        Some(Hot::Incr(namespace)) => {
            let Some((served, counts)) = access.served(lane, namespace) else { return Ok(false) };
            let sequence = served.sequence.get();
            let taken = match sequence.fast(py, 0) {
                Some(taken) => taken,
                None => match sequence.take_buffered(py, 1)? {
                    Some(taken) => taken.first,
                    None => {
                        access.put_back();
                        return Ok(false);
                    }
                },
            };
            counts.count(Operation::Incr, 1);
            served.note(taken);
            resp::write_integer(reply, taken);
            Ok(true)
        }
        Some(Hot::IncrBy(namespace, count)) if count <= lane.most => {
            let Some((served, counts)) = access.served(lane, namespace) else { return Ok(false) };
            let Some(row) = served.sequence.get().take_row(py, count)? else {
                access.put_back();
                return Ok(false);
            };
            counts.count(Operation::IncrBy, count.into());
            served.note(last(row));
            resp::write_integer(reply, last(row));
            Ok(true)
        }
        Some(Hot::Ping) => {
            reply.extend_from_slice(b"+PONG\r\n");
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn explain(fault: Fault) -> &'static str {
    match fault {
        Fault::Words => "invalid multibulk length",
        Fault::Dollar => "expected '$'",
        Fault::Length => "invalid bulk length",
        Fault::End => "a bulk string does not end with CR LF",
        Fault::Size => "the command is too long",
        Fault::Foreign => "this is the Redis protocol, not HTTP or TLS",
    }
}

#[pymethods]
impl RespSession {
    #[new]
    fn py_new(lane: Py<Lane>) -> Self {
        let access = Access::new(lane.get().open, "", None);
        Self { lane, access, pending: Vec::new(), from: 0, is_queueing: false }
    }

    /// Read bytes, and return the bytes to send. A tuple adds the reason why the session stopped: the words of the first
    /// command that Python must answer; a str that describes malformed bytes, which end the connection; or None if the
    /// connection used up its turn and continues in a later one.
    fn feed<'py>(&mut self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.run(py, Some(data))
    }

    /// Continue with the kept bytes, after Python has answered. Returns as :meth:`feed`.
    fn resume<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.run(py, None)
    }

    /// Keep bytes while Python answers.
    fn hold(&mut self, data: &[u8]) {
        self.pending.extend_from_slice(data);
    }

    /// Hand all commands to Python, which queues them, until :meth:`replay`.
    fn queue(&mut self) {
        self.is_queueing = true;
    }

    /// Queue no more commands, and read these bytes before the kept ones.
    fn replay(&mut self, data: &[u8]) {
        self.is_queueing = false;
        self.pending.splice(..self.from, data.iter().copied());
        self.from = 0;
    }

    /// The number of kept bytes: the beginning of a command, or those after a command that Python answers.
    #[getter]
    fn held(&self) -> usize {
        self.pending.len() - self.from
    }

    /// Let the connection use all namespaces, or none, under the name of a key and at most as often as the bucket allows.
    #[pyo3(signature = (*, all, key = "", bucket = None))]
    fn admit(&mut self, all: bool, key: &str, bucket: Option<Bucket>) {
        self.access = Access::new(all, key, bucket);
    }

    /// Let the connection use a namespace.
    fn allow(&mut self, namespace: &str) {
        self.access.allow(self.lane.get(), namespace);
    }
}

/// A connection of HTTP/1, in front of the HTTP server.
///
/// HttpSession(lane)
#[pyclass(module = "mintage._core.lane")]
pub struct HttpSession {
    lane: Py<Lane>,
    access: Access,
    /// The key that the access is for.
    key: Option<Box<[u8]>>,
    /// The beginning of what may become a hot request.
    pending: Vec<u8>,
    asked: Option<Asked>,
    /// True if the connection used up its turn before all bytes were read.
    #[pyo3(get)]
    paused: bool,
}

/// A hot request that Python must answer.
struct Asked {
    key: Option<Box<[u8]>>,
    namespace: Box<str>,
}

#[pymethods]
impl HttpSession {
    #[new]
    fn py_new(lane: Py<Lane>) -> Self {
        let access = Access::new(lane.get().open, "", None);
        Self { lane, access, key: None, pending: Vec::new(), asked: None, paused: false }
    }

    /// Read bytes at the start of a request, and return the bytes to send. A tuple adds the bytes for the HTTP server, or None if
    /// the connection ends after the bytes to send. If the connection used up its turn, ``paused`` is True, and the caller feeds
    /// those bytes again.
    fn feed<'py>(&mut self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let mut kept = std::mem::take(&mut self.pending);
        let bytes = if kept.is_empty() {
            data
        } else {
            kept.extend_from_slice(data);
            &kept
        };
        let lane = self.lane.get();
        let mut reply = Vec::new();
        let mut at = 0;
        self.asked = None;
        self.paused = false;
        let behind = loop {
            if at == bytes.len() {
                break false;
            }
            if lane.draining.load(Ordering::Acquire) {
                break true;
            }
            let request = match http::parse(&bytes[at..], &lane.trace_header, lane.limit) {
                http::Parsed::Hot(request) if request.count <= lane.most => request,
                http::Parsed::Incomplete => break false,
                _ => break true,
            };
            // Compare before the answer, as one may be longer than a turn; the first one is always sent.
            self.paused = at > 0 && at + reply.len() + request.count as usize * INTEGER > MAX_REPLY_BATCH;
            if self.paused {
                break true;
            }
            let known = lane.open || request.key.is_some() && request.key == self.key.as_deref();
            let answered = match known.then(|| self.access.served(lane, request.namespace.as_bytes())).flatten() {
                Some((served, counts)) => {
                    let answered = lane.answer(py, served, counts, &request, &mut reply)?;
                    if !answered {
                        self.access.put_back();
                    }
                    answered
                }
                None => false,
            };
            if !answered {
                self.asked = Some(Asked { key: request.key.map(Into::into), namespace: request.namespace.into() });
                break true;
            }
            at += request.used;
            if request.connection == Connection::Closed {
                // Later bytes of the client get no answer.
                let reply = PyBytes::new(py, &reply).into_any();
                return PyTuple::new(py, [reply, py.None().into_bound(py)]).map(Bound::into_any);
            }
        };
        let reply = PyBytes::new(py, &reply).into_any();
        if behind {
            return PyTuple::new(py, [reply, PyBytes::new(py, &bytes[at..]).into_any()]).map(Bound::into_any);
        }
        self.pending = if at < bytes.len() { bytes[at..].to_vec() } else { Vec::new() };
        Ok(reply)
    }

    /// Return the beginning of a request, for the HTTP server, and drop it here.
    fn release<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &std::mem::take(&mut self.pending))
    }

    /// The number of kept bytes, of a request whose end was not read yet.
    #[getter]
    fn held(&self) -> usize {
        self.pending.len()
    }

    /// The key and the namespace of the last hot request, if Python must answer it.
    #[getter]
    fn asked<'py>(&self, py: Python<'py>) -> Option<(Option<Bound<'py, PyBytes>>, &str)> {
        let Asked { key, namespace } = self.asked.as_ref()?;
        Some((key.as_ref().map(|key| PyBytes::new(py, key)), namespace))
    }

    /// Let requests with this key, which has a name, use a namespace.
    #[pyo3(signature = (key, namespace, name = "", bucket = None))]
    fn allow(&mut self, key: &[u8], namespace: &str, name: &str, bucket: Option<Bucket>) {
        if self.key.as_deref() != Some(key) {
            self.access = Access::new(false, name, bucket);
            self.key = Some(key.into());
        }
        self.access.allow(self.lane.get(), namespace);
    }
}

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Bucket>()?;
    module.add_class::<HttpSession>()?;
    module.add_class::<Lane>()?;
    module.add_class::<RespSession>()?;
    module.add_function(wrap_pyfunction!(http_date, module)?)?;
    module.add_function(wrap_pyfunction!(is_trace, module)?)?;
    module.add("MOST_ALLOC", mintage_wire::http::MAX_ALLOC_COUNT)?;
    module.add("MOST_ALLOC_NAME", mintage_wire::http::MAX_ALLOC_NAME)?;
    module.add("MOST_WORDS", mintage_wire::resp::MAX_WORDS)?;
    module.add("MAX_REPLY_BATCH", MAX_REPLY_BATCH)
}
