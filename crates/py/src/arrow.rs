//! Arrays as columns of Arrow, of their usual type or of another one that a consumer asks for.

use crate::decimal::{DIGITS, decimals};
use crate::hot::{Buffer, Data, Field, IdClass, room};
use crate::{errors, values};
use mintage_core::codec::as_chunks;
use mintage_core::id::Id;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::CString;
use std::sync::Arc;

/// IDs that may become a column.
pub struct Ids<'a> {
    /// The scheme's word.
    scheme: &'static str,
    data: &'a Py<PyBytes>,
    kind: Kind,
}

/// The kind of the items.
#[derive(Clone, Copy)]
enum Kind {
    /// Bytes of a size, whose text has a length.
    Bytes { size: usize, text: usize, encode: fn(&[u8], &mut [u8]) },
    /// Integers of 64 bits in native order, which may be too large for signed ones.
    Integers { signed: bool },
}

impl Kind {
    const fn size(self) -> usize {
        match self {
            Self::Bytes { size, .. } => size,
            Self::Integers { .. } => 8,
        }
    }

    /// The most characters of a text.
    const fn text(self) -> usize {
        match self {
            Self::Bytes { text, .. } => text,
            Self::Integers { .. } => DIGITS,
        }
    }
}

/// The layout in memory of values of any length.
#[derive(Clone, Copy)]
enum Width {
    /// One after the other, with offsets of 32 bits.
    Small,
    /// One after the other, with offsets of 64 bits.
    Large,
    /// With views of 16 bytes, which hold values of up to 12 bytes themselves.
    View,
}

/// The type in which a column has its values.
#[derive(Clone, Copy)]
enum Form {
    /// As it is in memory.
    Plain,
    /// The same, where the integers would fit signed ones.
    Unsigned,
    Binary(Width),
    Text(Width),
}

/// The longest value that a view holds itself, in bytes.
const INLINE: usize = 12;
const EXTENSION: &[u8] = b"ARROW:extension:name";
const EXTENSION_DATA: &[u8] = b"ARROW:extension:metadata";

impl<'a> Ids<'a> {
    /// The packed IDs of a class.
    pub fn of<C: IdClass>(scheme: &'static str, data: &'a Py<PyBytes>) -> Self {
        Self { scheme, data, kind: Kind::Bytes { size: C::Id::SIZE, text: C::Id::TEXT, encode: C::Id::encode_many } }
    }

    /// Snowflakes, in native order.
    pub fn integers(signed: bool, data: &'a Py<PyBytes>) -> Self {
        Self { scheme: "snowflake", data, kind: Kind::Integers { signed } }
    }

    fn count(&self, py: Python<'_>) -> usize {
        self.data.as_bytes(py).len() / self.kind.size()
    }

    /// The type if the consumer asks for none.
    pub fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(Form::Plain, None).capsule(py)
    }

    /// The type and the values.
    pub fn array<'py>(
        &self,
        py: Python<'py>,
        requested: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (field, data) = self.column(py, requested)?;
        Ok((field.capsule(py)?, data.capsule(py)?))
    }

    /// A stream of them as one piece.
    pub fn stream<'py>(&self, py: Python<'py>, requested: Option<&Bound<'_, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let (field, data) = self.column(py, requested)?;
        data.stream(py, field)
    }

    fn column(&self, py: Python<'_>, requested: Option<&Bound<'_, PyAny>>) -> PyResult<(Field, Data)> {
        let requested = requested.map(|capsule| Field::read(capsule, "requested_schema")).transpose()?;
        let form = requested.as_ref().map_or(Form::Plain, |field| self.fit(py, field));
        Ok((self.field(form, requested.as_ref()), self.data(py, form)?))
    }

    /// The form that a request asks for; the plain one for any other type.
    fn fit(&self, py: Python<'_>, requested: &Field) -> Form {
        // Offsets of 32 bits are too small for large columns.
        let width = |letter, bytes: usize| match letter {
            b'v' => Width::View,
            b'Z' | b'U' => Width::Large,
            _ if self.count(py).saturating_mul(bytes) > i32::MAX as usize => Width::Large,
            _ => Width::Small,
        };
        match (requested.format.to_bytes(), self.kind) {
            ([letter @ (b'z' | b'Z')] | [letter @ b'v', b'z'], Kind::Bytes { size, .. }) => {
                Form::Binary(width(*letter, size))
            }
            ([letter @ (b'u' | b'U')] | [letter @ b'v', b'u'], kind) => Form::Text(width(*letter, kind.text())),
            (b"L", Kind::Integers { signed: true }) => Form::Unsigned,
            _ => Form::Plain,
        }
    }

    fn field(&self, form: Form, requested: Option<&Field>) -> Field {
        let format = match form {
            Form::Plain => match self.kind {
                Kind::Bytes { size, .. } => format!("w:{size}"),
                Kind::Integers { signed } => if signed { "l" } else { "L" }.into(),
            },
            Form::Unsigned => "L".into(),
            Form::Binary(Width::Small) => "z".into(),
            Form::Binary(Width::Large) => "Z".into(),
            Form::Binary(Width::View) => "vz".into(),
            Form::Text(Width::Small) => "u".into(),
            Form::Text(Width::Large) => "U".into(),
            Form::Text(Width::View) => "vu".into(),
        };
        let mut field = Field::new(&format, Vec::new());
        let of =
            |key: &[u8]| requested?.metadata.iter().find(|(found, _)| found == key).map(|(_, value)| value.clone());
        let has_format = requested.is_some_and(|requested| requested.format == field.format);
        if let Some(name) = of(EXTENSION).filter(|name| has_format && self.is_called(form, name)) {
            field.metadata =
                vec![(EXTENSION.into(), name), (EXTENSION_DATA.into(), of(EXTENSION_DATA).unwrap_or_default())];
        }
        field
    }

    /// Returns true if the name of an extension type fits these values.
    fn is_called(&self, form: Form, name: &[u8]) -> bool {
        match form {
            Form::Plain if name == b"arrow.uuid" => self.kind.size() == 16,
            Form::Plain | Form::Unsigned | Form::Binary(_) => {
                name.strip_prefix(b"mintage.") == Some(self.scheme.as_bytes())
            }
            Form::Text(_) => false,
        }
    }

    fn data(&self, py: Python<'_>, form: Form) -> PyResult<Data> {
        let (count, ids, size) = (self.count(py), self.data.as_bytes(py), self.kind.size());
        let lent = |start| Buffer::lent(py, self.data, start);
        let buffers = match (form, self.kind) {
            (Form::Plain | Form::Unsigned, _) => vec![Buffer::absent(), lent(0)],
            (Form::Binary(Width::View), _) if size <= INLINE => {
                let mut views = room(count)?;
                // The compiler makes moves between registers of copies of a known size.
                match size {
                    10 => views.extend(as_chunks::<_, 10>(ids).0.iter().map(|id| inline(id))),
                    12 => views.extend(as_chunks::<_, 12>(ids).0.iter().map(|id| inline(id))),
                    _ => views.extend(ids.chunks_exact(size).map(inline)),
                }
                vec![Buffer::absent(), Buffer::made(views), Buffer::made(Vec::<i64>::new())]
            }
            (Form::Binary(width), _) => laid(width, count, size, ids, |i| i * size, lent)?,
            (Form::Text(width), Kind::Bytes { text: length, encode, .. }) => {
                let mut text = room(count * length)?;
                text.resize(count * length, 0);
                encode(ids, &mut text);
                let text = Arc::new(text);
                laid(width, count, length, &text, |i| i * length, |start| Buffer::part(&text, start))?
            }
            (Form::Text(width), Kind::Integers { .. }) => {
                let (mut text, mut ends) = (room(count * DIGITS)?, room(count + 1)?);
                ends.push(0);
                decimals(ids, |number| {
                    text.extend_from_slice(number);
                    ends.push(text.len());
                });
                let text = Arc::new(text);
                laid(width, count, DIGITS, &text, |i| ends[i], |start| Buffer::part(&text, start))?
            }
        };
        Ok(Data::Ours(count, buffers, Vec::new()))
    }
}

/// The buffers of values that lie one after the other. Each is no longer than `longest`; they begin at `at(0)`, `at(1)` and
/// so on. `part` is their memory from an offset on.
#[inline(always)]
fn laid(
    width: Width,
    count: usize,
    longest: usize,
    values: &[u8],
    at: impl Fn(usize) -> usize,
    part: impl Fn(usize) -> Buffer,
) -> PyResult<Vec<Buffer>> {
    match width {
        Width::Small => {
            let mut places = room(count + 1)?;
            places.extend((0..=count).map(|i| at(i) as i32));
            return Ok(vec![Buffer::absent(), Buffer::made(places), part(0)]);
        }
        Width::Large => {
            let mut places = room(count + 1)?;
            places.extend((0..=count).map(|i| at(i) as i64));
            return Ok(vec![Buffer::absent(), Buffer::made(places), part(0)]);
        }
        Width::View => {}
    }
    // An offset within a buffer has 32 bits, so a buffer holds this many values.
    let most = i32::MAX as usize / longest;
    let (mut views, mut lengths, mut parts) = (room(count)?, Vec::new(), Vec::new());
    for first in (0..count).step_by(most) {
        let (end, start) = ((first + most).min(count), at(first));
        let (buffer, mut from) = ((parts.len() as i32).to_ne_bytes(), start);
        views.extend((first..end).map(|i| {
            let to = at(i + 1);
            let value = &values[from..to];
            let place = ((from - start) as i32).to_ne_bytes();
            from = to;
            if value.len() <= INLINE {
                return inline(value);
            }
            let mut view = [0; 16];
            view[..4].copy_from_slice(&(value.len() as i32).to_ne_bytes());
            view[4..8].copy_from_slice(&value[..4]);
            view[8..12].copy_from_slice(&buffer);
            view[12..].copy_from_slice(&place);
            u128::from_ne_bytes(view)
        }));
        parts.push(part(start));
        lengths.push((at(end) - start) as i64);
    }
    let lengths = Buffer::made(lengths);
    Ok([Buffer::absent(), Buffer::made(views)].into_iter().chain(parts).chain([lengths]).collect())
}

/// The view that holds a short value itself.
#[inline(always)]
fn inline(value: &[u8]) -> u128 {
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(value.len() as i32).to_ne_bytes());
    view[4..4 + value.len()].copy_from_slice(value);
    u128::from_ne_bytes(view)
}

/// IDs as the one column of a table of Arrow.
///
/// Column(ids, name, type=None)
///
/// pyarrow, Polars, pandas and DuckDB call its method for a stream, and need not know mintage:
///
/// >>> from mintage import sno
/// >>> from mintage.columns import Column
/// >>> ids = Column(sno.Generator(1).batch(1000), "order_id", "string")
/// >>> ids.__arrow_c_stream__()  # as pyarrow.table(ids) does
/// <capsule object "arrow_array_stream" at ...>
///
/// :param ids: an Array, or anything with ``__arrow_c_array__``.
/// :param name: the column's.
/// :param type: the type that it asks of ``ids`` where the consumer asks for none: ``"binary"``, ``"large_binary"``,
///     ``"binary_view"``, ``"string"``, ``"large_string"``, ``"string_view"``; by default what ``ids`` are.
/// :raises ArgumentError: an argument of the wrong type.
/// :raises ConfigError: ``config.policy``: another ``type``.
#[pyclass(frozen, module = "mintage.columns")]
pub struct Column {
    ids: Py<PyAny>,
    name: CString,
    wanted: Option<Field>,
}

const TYPES: [(&str, &str); 6] = [
    ("binary", "z"),
    ("large_binary", "Z"),
    ("binary_view", "vz"),
    ("string", "u"),
    ("large_string", "U"),
    ("string_view", "vu"),
];

impl Column {
    /// The type and the values, in a struct of one field.
    fn table(&self, py: Python<'_>, requested: Option<&Bound<'_, PyAny>>) -> PyResult<(Field, Data)> {
        let requested = requested.map(|capsule| Field::read(capsule, "requested_schema")).transpose()?;
        let wanted = match &requested {
            None => self.wanted.as_ref(),
            Some(Field { format, children, .. }) if format.as_bytes() == b"+s" && children.len() == 1 => {
                children.first()
            }
            Some(_) => return Err(PyValueError::new_err("requested_schema is no struct of one field")),
        };
        let wanted = wanted.map(|field| field.capsule(py)).transpose()?;
        let made = self.ids.bind(py).call_method1("__arrow_c_array__", (wanted,))?;
        let (field, data) = made.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let (mut field, data) = (Field::read(&field, "ids")?, Data::take(&data, "ids")?);
        field.name.clone_from(&self.name);
        let count = data.len();
        Ok((Field::of_struct(vec![field]), Data::Ours(count, vec![Buffer::absent()], vec![data])))
    }
}

#[pymethods]
impl Column {
    #[new]
    #[pyo3(signature = (ids, name, r#type = None))]
    fn py_new(ids: Bound<'_, PyAny>, name: &Bound<'_, PyAny>, r#type: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        if !ids.hasattr("__arrow_c_array__")? {
            return Err(errors::argument("ids", "an Array or another object with __arrow_c_array__", &ids));
        }
        let text = values::text(name, "name")?;
        let name = CString::new(text.as_bytes())
            .map_err(|_| errors::field(ids.py(), "field.format", "name has a zero character"))?;
        let wanted = r#type.map(|word| values::policy(Some(word), "type", &TYPES)).transpose()?;
        Ok(Self { ids: ids.unbind(), name, wanted: wanted.map(|format| Field::new(format, Vec::new())) })
    }

    /// Return the type of the table: a struct of one field, in a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.table(py, None)?.0.capsule(py)
    }

    /// Return the table: the capsules of its type and of its values.
    ///
    /// :raises ArgumentError: ``requested_schema`` is no capsule of a schema.
    /// :raises ValueError: the schema is no struct of one field, or the capsule was used up before.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (field, data) = self.table(py, requested_schema)?;
        Ok((field.capsule(py)?, data.capsule(py)?))
    }

    /// Return the table as a stream of one piece.
    ///
    /// :raises ArgumentError: ``requested_schema`` is no capsule of a schema.
    /// :raises ValueError: the schema is no struct of one field, or the capsule was used up before.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (field, data) = self.table(py, requested_schema)?;
        data.stream(py, field)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Column {:?} of {}>", self.name.to_string_lossy(), self.ids.bind(py).repr()?))
    }
}

/// Puts the class into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Column>()
}
