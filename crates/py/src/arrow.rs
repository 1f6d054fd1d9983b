//! Arrays as columns of Arrow: of the type that suits them, or another in which a consumer asks for the same values.

use crate::hot::{Buffer, Data, Field};
use crate::id::Class;
use crate::{errors, values};
use mintage_core::id::Id;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::CString;
use std::sync::Arc;

type Encode = fn(&[u8], &mut [u8]);

/// IDs that may become a column.
pub struct Ids<'a> {
    /// The scheme's word.
    scheme: &'static str,
    data: &'a Py<PyBytes>,
    /// Bytes and characters of an ID, and how the text of many is written.
    size: usize,
    text: usize,
    encode: Encode,
}

/// How values of any length lie in memory.
#[derive(Clone, Copy)]
enum Width {
    /// One behind the other, after places of 32 bits.
    Small,
    /// One behind the other, after places of 64 bits.
    Large,
    /// Behind views of 16 bytes, in which lie what is no longer than 12.
    View,
}

/// In what a column has its values.
#[derive(Clone, Copy)]
enum Form {
    Plain,
    Binary(Width),
    Text(Width),
}

/// What a view holds itself.
const INLINE: usize = 12;
const EXTENSION: &[u8] = b"ARROW:extension:name";
const EXTENSION_DATA: &[u8] = b"ARROW:extension:metadata";

impl<'a> Ids<'a> {
    /// The packed IDs of a class.
    pub fn of<C: Class>(scheme: &'static str, data: &'a Py<PyBytes>) -> Self {
        Self { scheme, data, size: C::Id::SIZE, text: C::Id::TEXT, encode: C::Id::encode_many }
    }

    fn count(&self, py: Python<'_>) -> usize {
        self.data.as_bytes(py).len() / self.size
    }

    /// The type in which nobody asked for another.
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
        Ok((self.field(form, requested.as_ref()), self.data(py, form)))
    }

    /// The form that a request asks for; the plain one, if it is another type than these.
    fn fit(&self, py: Python<'_>, requested: &Field) -> Form {
        // A place of 32 bits is not enough for everything.
        let width = |letter, bytes: usize| match letter {
            b'v' => Width::View,
            b'Z' | b'U' => Width::Large,
            _ if self.count(py).saturating_mul(bytes) > i32::MAX as usize => Width::Large,
            _ => Width::Small,
        };
        match requested.format.to_bytes() {
            [letter @ (b'z' | b'Z')] | [letter @ b'v', b'z'] => Form::Binary(width(*letter, self.size)),
            [letter @ (b'u' | b'U')] | [letter @ b'v', b'u'] => Form::Text(width(*letter, self.text)),
            _ => Form::Plain,
        }
    }

    fn field(&self, form: Form, requested: Option<&Field>) -> Field {
        let format = match form {
            Form::Plain => format!("w:{}", self.size),
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
        if let Some(name) = of(EXTENSION)
            && requested.is_some_and(|requested| requested.format == field.format)
            && self.is_called(form, &name)
        {
            field.metadata =
                vec![(EXTENSION.into(), name), (EXTENSION_DATA.into(), of(EXTENSION_DATA).unwrap_or_default())];
        }
        field
    }

    /// Whether a name for an extension of a type is true of these.
    fn is_called(&self, form: Form, name: &[u8]) -> bool {
        match form {
            Form::Plain if name == b"arrow.uuid" => self.size == 16,
            Form::Plain | Form::Binary(_) => name.strip_prefix(b"mintage.") == Some(self.scheme.as_bytes()),
            Form::Text(_) => false,
        }
    }

    fn data(&self, py: Python<'_>, form: Form) -> Data {
        let (count, ids) = (self.count(py), self.data.as_bytes(py));
        let lent = |start| Buffer::lent(py, self.data, start);
        let text = || {
            let mut text = vec![0; count * self.text];
            (self.encode)(ids, &mut text);
            Arc::new(text)
        };
        let buffers = match form {
            Form::Plain => vec![Buffer::absent(), lent(0)],
            Form::Binary(Width::View) if self.size <= INLINE => {
                vec![Buffer::absent(), Buffer::made(inline(ids, self.size)), Buffer::made(Vec::<i64>::new())]
            }
            Form::Binary(Width::View) => viewed(ids, self.size, lent),
            Form::Binary(width) => vec![Buffer::absent(), places(count, self.size, width), lent(0)],
            Form::Text(Width::View) => {
                let text = text();
                viewed(&text, self.text, |start| Buffer::part(&text, start))
            }
            Form::Text(width) => vec![Buffer::absent(), places(count, self.text, width), Buffer::part(&text(), 0)],
        };
        Data::Ours(count, buffers, Vec::new())
    }
}

/// Where each of so many values begins, and the last ends.
fn places(count: usize, size: usize, width: Width) -> Buffer {
    match width {
        Width::Large => Buffer::made((0..=count).map(|i| (i * size) as i64).collect::<Vec<_>>()),
        _ => Buffer::made((0..=count).map(|i| (i * size) as i32).collect::<Vec<_>>()),
    }
}

/// Views that hold their values themselves.
fn inline(values: &[u8], size: usize) -> Vec<u128> {
    let view = |value: &[u8]| {
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(size as i32).to_ne_bytes());
        view[4..4 + size].copy_from_slice(value);
        u128::from_ne_bytes(view)
    };
    values.chunks_exact(size).map(view).collect()
}

/// Views of values that lie in other buffers, these buffers, and their lengths.
fn viewed(values: &[u8], size: usize, part: impl Fn(usize) -> Buffer) -> Vec<Buffer> {
    // A place within a buffer has 32 bits.
    let most = i32::MAX as usize / size;
    let view = |(i, value): (usize, &[u8])| {
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(size as i32).to_ne_bytes());
        view[4..8].copy_from_slice(&value[..4]);
        view[8..12].copy_from_slice(&((i / most) as i32).to_ne_bytes());
        view[12..].copy_from_slice(&((i % most * size) as i32).to_ne_bytes());
        u128::from_ne_bytes(view)
    };
    let views: Vec<_> = values.chunks_exact(size).enumerate().map(view).collect();
    let lengths: Vec<_> = values.chunks(most * size).map(|part| part.len() as i64).collect();
    let parts = (0..lengths.len()).map(|i| part(i * most * size));
    [Buffer::absent(), Buffer::made(views)].into_iter().chain(parts).chain([Buffer::made(lengths.clone())]).collect()
}

/// IDs as the one column of a table of Arrow.
///
/// Column(ids, name, type=None)
///
/// :param ids: an Array, or anything with ``__arrow_c_array__``.
/// :param name: the column's.
/// :param type: what it asks of ``ids`` where the consumer asks for nothing: ``"binary"``, ``"large_binary"``, ``"binary_view"``,
///     ``"string"``, ``"large_string"``, ``"string_view"``; by default what ``ids`` are.
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

    /// The type of the table: a struct of one field, in a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.table(py, None)?.0.capsule(py)
    }

    /// The table: the capsules of its type and of its values.
    ///
    /// :raises ArgumentError: ``requested_schema`` is no capsule of a schema.
    /// :raises ValueError: it is no struct of one field, or was used up before.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (field, data) = self.table(py, requested_schema)?;
        Ok((field.capsule(py)?, data.capsule(py)?))
    }

    /// The table as a stream of one piece.
    ///
    /// :raises ArgumentError: ``requested_schema`` is no capsule of a schema.
    /// :raises ValueError: it is no struct of one field, or was used up before.
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
