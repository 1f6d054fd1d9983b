//! One row a scheme: its module, and what its default generator's `new` is made of.

use crate::text::{cuid, cuid2, nanoid};
use crate::ticked::ticked;
use crate::{arrow, formats, hot, lane, locality, sequence, sno, snowflake, typeid, uuid, views};
use pyo3::prelude::*;

/// A submodule of the extension.
struct Submodule {
    name: &'static str,
    /// Puts its classes and functions into it.
    add: fn(&Bound<'_, PyModule>) -> PyResult<()>,
    /// The hooks of a scheme's generators; `None` for a module of another kind.
    hooks: Option<GeneratorHooks>,
}

type FunctionHook = for<'py> fn(&Bound<'py, PyAny>, &str) -> Option<PyResult<Bound<'py, PyAny>>>;

struct GeneratorHooks {
    /// Makes a generator's `new` a function of the Python module of a name.
    as_function: FunctionHook,
    /// Finds the generator whose `new` is such a function; `None` until there is one.
    default: for<'py> fn(Python<'py>) -> Option<Bound<'py, PyAny>>,
}

const fn scheme<G: hot::OfModule>(name: &'static str, add: fn(&Bound<'_, PyModule>) -> PyResult<()>) -> Submodule {
    Submodule { name, add, hooks: Some(GeneratorHooks { as_function: as_function::<G>, default: default::<G> }) }
}

const fn other(name: &'static str, add: fn(&Bound<'_, PyModule>) -> PyResult<()>) -> Submodule {
    Submodule { name, add, hooks: None }
}

/// Every submodule.
const MODULES: &[Submodule] = &[
    scheme::<sno::Generator>("sno", sno::add),
    scheme::<snowflake::Generator>("snowflake", snowflake::add),
    scheme::<locality::Generator>("locality", locality::add),
    scheme::<uuid::Generator>("uuid", uuid::add),
    scheme::<ulid::Generator>("ulid", ulid::add),
    scheme::<ksuid::Generator>("ksuid", ksuid::add),
    scheme::<ksuid_ms::Generator>("ksuid_ms", ksuid_ms::add),
    scheme::<xid::Generator>("xid", xid::add),
    scheme::<objectid::Generator>("objectid", objectid::add),
    scheme::<sandflake::Generator>("sandflake", sandflake::add),
    scheme::<nanoid::Generator>("nanoid", nanoid::add),
    scheme::<cuid::Generator>("cuid", cuid::add_all),
    scheme::<cuid2::Generator>("cuid2", cuid2::add),
    other("arrow", arrow::add),
    other("formats", formats::add),
    other("sequence", sequence::add),
    other("lane", lane::add),
    other("typeid", typeid::add),
    other("views", views::add),
];

mod ulid {
    super::ticked! {
        /// A ULID: 16 bytes, of which the first 48 bits are milliseconds, and 26 characters.
        Ulid(mintage_core::schemes::ulid::Id) in "mintage.ulid", "ulid", 16 bytes, 26 characters:
        "Parse 26 characters of Crockford's base 32, in either case; the first is 7 at most."
        /// A generator of ULIDs, safe to share between threads.
        ///
        /// Within a millisecond, and while the clock is behind, each is 1 more than the one before it.
        ///
        /// >>> from mintage import ulid
        /// >>> with ulid.Generator() as generator:
        /// ...     id = generator.new()
        /// >>> len(str(id))
        /// 26
        ///
        /// :param node: 0 to 2^24 - 1, in place of the upper 24 of the 80 random bits; without one, and without a lease, all
        ///     80 are random.
        node
        new_at: "One counter numbers the IDs of all times, and starts over after 2^32 IDs: any 2^32 in a row differ. Until half of them\nare used, they also differ from the IDs of :meth:`new` and :meth:`nth_at`."
        nth_at: "They differ from those of :meth:`new` and :meth:`new_at`."
    }
}

mod ksuid {
    super::ticked! {
        /// A KSUID: 20 bytes, of which the first 32 bits are seconds since 2014-05-13T16:53:20Z, and 27 characters.
        Ksuid(mintage_core::schemes::ksuid::Id) in "mintage.ksuid", "ksuid", 20 bytes, 27 characters:
        "Parse 27 characters of ``0-9A-Za-z``, ``aWgEPTl1tmebfsQzFP4bxwgy80V`` at most."
        /// A generator of KSUIDs, safe to share between threads.
        ///
        /// Within a second, and while the clock is behind, each is 1 more than the one before it.
        ///
        /// >>> from mintage import ksuid
        /// >>> with ksuid.Generator() as generator:
        /// ...     id = generator.new()
        /// >>> len(str(id))
        /// 27
        ///
        /// :param node: 0 to 2^32 - 1, in place of the upper 32 of the 128 random bits; without one, and without a lease,
        ///     all 128 are random.
        node
        new_at: "One counter numbers the IDs of all times, and starts over after 2^32 IDs: any 2^32 in a row differ. Until half of them\nare used, they also differ from the IDs of :meth:`new` and :meth:`nth_at`."
        nth_at: "They differ from those of :meth:`new` and :meth:`new_at`."
    }
}

mod ksuid_ms {
    super::ticked! {
        /// A KSUID of svix's kind: 20 bytes, of which the first 40 bits are ticks of 4 ms since 2014-05-13T16:53:20Z, and 27
        /// characters.
        KsuidMs(mintage_core::schemes::ksuid_ms::Id) in "mintage.ksuid_ms", "ksuid_ms", 20 bytes, 27 characters:
        "Parse 27 characters of ``0-9A-Za-z``, ``aWgEPTl1tmebfsQzFP4bxwgy80V`` at most."
        /// A generator of KSUIDs of svix's kind, safe to share between threads.
        ///
        /// Within 4 ms, and while the clock is behind, each is 1 more than the one before it.
        ///
        /// >>> from mintage import ksuid_ms
        /// >>> with ksuid_ms.Generator() as generator:
        /// ...     id = generator.new()
        /// >>> len(str(id))
        /// 27
        ///
        /// :param node: 0 to 2^32 - 1, in place of the upper 32 of the 120 random bits; without one, and without a lease,
        ///     all 120 are random.
        node
        new_at: "One counter numbers the IDs of all times, and starts over after 2^32 IDs: any 2^32 in a row differ. Until half of them\nare used, they also differ from the IDs of :meth:`new` and :meth:`nth_at`."
        nth_at: "They differ from those of :meth:`new` and :meth:`new_at`."
    }
}

mod xid {
    super::ticked! {
        /// An xid: 12 bytes, of which the first 32 bits are seconds, and 20 characters.
        Xid(mintage_core::schemes::xid::Id) in "mintage.xid", "xid", 12 bytes, 20 characters:
        "Parse 20 characters of ``0-9a-v``, lower case; the last is 0 or g."
        /// A generator of xids, safe to share between threads.
        ///
        /// >>> from mintage import xid
        /// >>> with xid.Generator() as generator:
        /// ...     id = generator.new()
        /// >>> len(str(id))
        /// 20
        ///
        /// :param node: 0 to 2^40 - 1, machine above pid; without one, and without a lease, it is drawn at random, anew in
        ///     every forked child.
        node
        new_at: "One counter numbers the IDs of all times, and starts over after 2^24 IDs: any 2^24 in a row differ. Until half of them\nare used, they also differ from the IDs of :meth:`new` and :meth:`nth_at`."
        nth_at: "They are the IDs that :meth:`new` mints in the tick: ask only for ticks in which it mints none."
    }
}

mod objectid {
    super::ticked! {
        /// An ObjectId of MongoDB's: 12 bytes, of which the first 32 bits are seconds, and 24 characters.
        ObjectId(mintage_core::schemes::objectid::Id) in "mintage.objectid", "objectid", 12 bytes, 24 characters:
        "Parse 24 hex digits of either case."
        /// A generator of ObjectIds, safe to share between threads.
        ///
        /// >>> from mintage import objectid
        /// >>> with objectid.Generator() as generator:
        /// ...     id = generator.new()
        /// >>> len(str(id))
        /// 24
        ///
        /// :param process: 0 to 2^40 - 1; without one, and without a lease, it is drawn at random, anew in every forked child.
        process
        new_at: "One counter numbers the IDs of all times, and starts over after 2^24 IDs: any 2^24 in a row differ. Until half of them\nare used, they also differ from the IDs of :meth:`new` and :meth:`nth_at`."
        nth_at: "They are the IDs that :meth:`new` mints in the tick: ask only for ticks in which it mints none."
        {
            /// Return the ID of a ``bson.ObjectId``.
            ///
            /// >>> from mintage import objectid  # doctest: +SKIP
            /// >>> objectid.ID.from_bson(bson.ObjectId())  # doctest: +SKIP
            ///
            /// :raises ArgumentError: ``value`` is not a bson.ObjectId.
            /// :raises ImportError: bson, a part of pymongo, is not installed.
            #[staticmethod]
            #[pyo3(signature = (value, /))]
            fn from_bson(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                let class = value.py().import("bson")?.getattr("ObjectId")?;
                if !value.is_instance(&class)? {
                    return Err(crate::errors::argument("value", "a bson.ObjectId", value));
                }
                Ok(Self(mintage_core::id::Id::from_slice(&value.getattr("binary")?.extract::<[u8; 12]>()?)))
            }

            /// Return the ``bson.ObjectId`` of the same 12 bytes.
            ///
            /// >>> from mintage import objectid  # doctest: +SKIP
            /// >>> objectid.new().as_bson()  # doctest: +SKIP
            ///
            /// :raises ImportError: bson, a part of pymongo, is not installed.
            fn as_bson<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let bytes = PyBytes::new(py, &mintage_core::id::Id::to_array(self.0));
                py.import("bson")?.getattr("ObjectId")?.call1((bytes,))
            }
        }
    }
}

mod sandflake {
    super::ticked! {
        /// A Sandflake: 16 bytes, of which the first 48 bits are milliseconds, and 26 characters.
        Sandflake(mintage_core::schemes::sandflake::Id) in "mintage.sandflake", "sandflake", 16 bytes, 26 characters:
        "Parse 26 characters of Crockford's base 32, upper case; the last 2 of their 130 bits are 0."
        /// A generator of Sandflakes, safe to share between threads.
        ///
        /// >>> from mintage import sandflake
        /// >>> with sandflake.Generator() as generator:
        /// ...     id = generator.new()
        /// >>> len(str(id))
        /// 26
        ///
        /// :param worker: 0 to 2^32 - 1; without one, and without a lease, it is drawn at random, anew in every forked child.
        worker
        new_at: "One counter numbers the IDs of all times, and starts over after 2^24 IDs: any 2^24 in a row differ. Until half of them\nare used, they also differ from the IDs of :meth:`new` and :meth:`nth_at`."
        nth_at: "They differ from those of :meth:`new` and :meth:`new_at`."
    }
}

fn as_function<'py, G: hot::OfModule>(
    generator: &Bound<'py, PyAny>,
    module: &str,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    generator.cast::<G>().ok().map(|generator| hot::function_of_module(generator, module))
}

fn default<G: hot::OfModule>(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    hot::generator_of_module::<G>(py).map(|generator| generator.to_owned().into_any())
}

/// Adds the submodules, and registers them, so that they can be imported by name.
pub fn add_modules(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let modules = py.import("sys")?.getattr("modules")?;
    for Submodule { name, add, .. } in MODULES {
        let submodule = PyModule::new(py, &format!("mintage._core.{name}"))?;
        add(&submodule)?;
        module.add(*name, &submodule)?;
        modules.set_item(format!("mintage._core.{name}"), submodule)?;
    }
    Ok(())
}

fn hooks() -> impl Iterator<Item = &'static GeneratorHooks> {
    MODULES.iter().filter_map(|module| module.hooks.as_ref())
}

/// Makes a generator's bound method `new` a function of the module of this name; `None` if it is no generator.
pub fn function_of<'py>(generator: &Bound<'py, PyAny>, module: &str) -> Option<PyResult<Bound<'py, PyAny>>> {
    hooks().find_map(|hooks| (hooks.as_function)(generator, module))
}

/// Returns the generators whose `new` are functions of modules that are imported.
pub fn defaults(py: Python<'_>) -> Vec<Bound<'_, PyAny>> {
    hooks().filter_map(|hooks| (hooks.default)(py)).collect()
}
