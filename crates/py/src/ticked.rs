//! Generators of formats that hold a tick and, below it, bits that count on from a random start.

use crate::clock::Patience;
use crate::generator::{self, GeneratorState, MintsAt, NodeGenerator};
use crate::hot::IdClass;
use crate::leases::{Subject, Terms};
use crate::{errors, hot, values};
use mintage_core::counting::Counting;
use mintage_core::given_time::GivenTimeCounter;
use mintage_core::id::Id as _;
use mintage_core::step::{Refusal, Run};
use mintage_core::ticked::Ticked;
use mintage_core::units::Tick;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyDict;
use pyo3::{PyClass, PyTypeInfo};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// The value that means no node number.
pub const NONE: u64 = u64::MAX;

/// The state of a generator of such IDs.
pub struct Ticking<T: Ticked> {
    pub state: GeneratorState<Counting>,
    node: AtomicU64,
    /// It gets another key whenever the generator attaches, so no two processes count on from the same bits.
    drawn: hot::TickBits,
    dated: GivenTimeCounter,
    of: PhantomData<fn() -> T>,
}

impl<T: Ticked> Ticking<T> {
    /// A generator whose node number is given, leased on request, or random.
    pub fn new(
        py: Python<'_>,
        node: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let pool = T::pool_layout();
        let given = node.map(|node| values::node(node, T::TERM, pool.nodes - 1)).transpose()?;
        let subject = Subject::of(T::POOL, &pool, given);
        let state = GeneratorState::on_request(py, T::counting(), Terms::read(py, keywords)?, &subject, given)?;
        Ok(Self::of(state))
    }

    fn of(state: GeneratorState<Counting>) -> Self {
        Self {
            node: AtomicU64::new(state.given().unwrap_or(NONE)),
            state,
            drawn: hot::TickBits::new(),
            dated: GivenTimeCounter::default(),
            of: PhantomData,
        }
    }

    /// The node number, if it has one.
    #[inline(always)]
    pub fn node(&self) -> Option<u64> {
        Some(self.node.load(Ordering::Relaxed)).filter(|&node| node != NONE)
    }
}

/// A class of such generators.
pub trait TickedClass: PyClass<Frozen = True> + PyTypeInfo + Sync {
    /// The class of its IDs.
    type Id: IdClass;
    fn ticking(&self) -> &Ticking<<Self::Id as IdClass>::Id>
    where
        <Self::Id as IdClass>::Id: Ticked;

    fn of_ticking(ticking: Ticking<<Self::Id as IdClass>::Id>) -> Self
    where
        <Self::Id as IdClass>::Id: Ticked;
}

impl<G: TickedClass> NodeGenerator for G
where
    <G::Id as IdClass>::Id: Ticked,
{
    type Mint = Counting;
    type Minted = <G::Id as IdClass>::Id;
    /// A key for the random bits of each tick.
    type Origin = [u8; 16];
    const TERM: &'static str = Self::Minted::TERM;
    const SIZE: usize = Self::Minted::SIZE;

    #[inline(always)]
    fn state(&self) -> &GeneratorState<Counting> {
        &self.ticking().state
    }

    fn origin(&self, py: Python<'_>) -> PyResult<[u8; 16]> {
        self.state().clock.bytes(py)
    }

    fn own_node(&self, py: Python<'_>) -> PyResult<u64> {
        match self.state().given() {
            Some(node) => Ok(node),
            None if Self::Minted::HAS_NODE => {
                Ok(u64::from_ne_bytes(self.state().clock.bytes(py)?) & ((1 << Self::Minted::NODE_BITS) - 1))
            }
            None => Ok(NONE),
        }
    }

    fn set_node(&self, py: Python<'_>, node: u64, key: Option<[u8; 16]>) {
        let ticking = self.ticking();
        ticking.node.store(node, Ordering::Relaxed);
        if let Some(key) = key {
            ticking.drawn.set_key(py, key);
        }
    }

    fn has_node(&self) -> bool {
        Self::Minted::HAS_NODE || self.state().leases.is_some()
    }

    fn new_mint(&self) -> Counting {
        Self::Minted::counting()
    }

    fn double(&self, _: Python<'_>, state: GeneratorState<Counting>) -> Self {
        Self::of_ticking(Ticking::of(state))
    }

    fn refused(&self, py: Python<'_>, patience: &mut Patience, why: Refusal) -> PyResult<()> {
        self.state().wait(py, patience, why)
    }

    #[inline(always)]
    fn first(&self, py: Python<'_>, run: Run, _: u8) -> Self::Minted {
        let ticking = self.ticking();
        let random = ticking.drawn.of(py, Tick(run.tick));
        Self::Minted::mint(Self::Minted::units(Tick(run.tick)), random, ticking.node(), run.first)
    }

    #[inline(always)]
    fn object(py: Python<'_>, minted: Self::Minted) -> hot::Object {
        hot::object(py, <G::Id as IdClass>::of(minted))
    }

    fn write(&self, py: Python<'_>, run: Run, _: u8, ids: &mut [u8]) {
        let ticking = self.ticking();
        let random = ticking.drawn.of(py, Tick(run.tick));
        let (units, node) = (Self::Minted::units(Tick(run.tick)), ticking.node());
        for (n, id) in (run.first..).zip(ids.chunks_exact_mut(Self::SIZE)) {
            id.copy_from_slice(Self::Minted::mint(units, random, node, n).to_array().as_ref());
        }
    }
}

impl<T: Ticked> Ticking<T> {
    /// The `n`-th ID of a given time.
    fn at(&self, py: Python<'_>, units: u64, n: u32) -> T {
        T::mint(units, self.drawn.of(py, T::source(units)), self.node(), n)
    }
}

/// The ID of the core.
type Id<G> = <<G as TickedClass>::Id as IdClass>::Id;

impl<G: TickedClass> MintsAt for G
where
    <G::Id as IdClass>::Id: Ticked,
{
    fn new_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>) -> PyResult<Id<G>> {
        let (py, time) = (slf.py(), values::time(time)?);
        let units = Id::<G>::units_at(time).map_err(errors::value)?;
        generator::mint_at(slf, time, Id::<G>::tick(units), |this| {
            let ticking = this.ticking();
            ticking.at(py, units, ticking.dated.next(Id::<G>::NUMBERS))
        })
    }

    /// Its random bits are the tick's.
    fn nth_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>, n: &Bound<'_, PyAny>) -> PyResult<Id<G>> {
        let (scale, py) = (Id::<G>::SCALE, slf.py());
        let (time, first) = generator::nth(time, n, 1 << Id::<G>::SEQUENCE_BITS, scale.unit_ms)?;
        let units = Id::<G>::units_at(time).map_err(errors::value)?;
        generator::mint_at(slf, time, Id::<G>::tick(units), |this| this.ticking().at(py, units, Id::<G>::nth(first)))
    }
}

/// The smallest or the largest ID of a time's tick.
pub fn bound<C: IdClass>(time: &Bound<'_, PyAny>, is_high: bool) -> PyResult<C>
where
    C::Id: Ticked,
{
    let units = C::Id::units_at(values::time(time)?).map_err(errors::value)?;
    Ok(C::of(C::Id::bound(units, is_high)))
}

/// Makes the classes and functions of such a format's module.
///
/// `ticked! { /// of the ID; Name(core::Id) in module, word, bytes, characters: "what parse reads"; /// of the generator;
/// node; new_at: how its numbers go on; nth_at: which other IDs its IDs differ from }`
macro_rules! ticked {
    (
        $(#[$doc:meta])*
        $class:ident($core:ty) in $module:literal, $word:literal, $size:literal bytes, $text:literal characters: $reads:literal
        $(#[$about:meta])*
        $term:ident
        new_at: $numbers:literal
        nth_at: $nth:literal
        $({ $($own:tt)* })?
    ) => {
        use pyo3::prelude::*;
        use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
        use $crate::generator::{self, packed_generator};
        use $crate::id::id;
        use $crate::ticked::{self, Ticking};
        use $crate::values::Defaulted;
        use $crate::{fields, hot};

        id! {
            $(#[$doc])*
            ///
            /// ID(value)
            ///
            #[doc = concat!("``value`` is ", $size, " bytes.")]
            $class($core) in $module, $word, $size bytes, $text characters: $reads
            {
                $($($own)*)?

                /// Compose an ID from its fields, by name: its time as ``time``, an aware datetime, or as ``timestamp_ms`` or
                /// ``timestamp_ns`` since the Unix epoch; the other fields are 0 where they are left out. A field of
                /// hexadecimal digits takes those, or an int.
                ///
                #[doc = concat!(">>> from mintage import ", $word)]
                #[doc = concat!(">>> ", $word, ".ID.from_parts(timestamp_ms=1_700_000_000_000).timestamp_ms")]
                /// 1700000000000
                ///
                /// :raises ArgumentError: a value of the wrong type.
                /// :raises FieldError: ``time.naive``, ``time.range``, ``field.range`` or ``field.format``.
                #[staticmethod]
                #[pyo3(signature = (**fields))]
                fn from_parts(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                    fields::from_parts(fields, <$core as mintage_core::id::Id>::FORMAT)
                }

                /// Return the same ID with other fields, as :meth:`from_parts` takes them.
                ///
                #[doc = concat!(">>> from mintage import ", $word)]
                #[doc = concat!(">>> id = ", $word, ".new()")]
                #[doc = concat!(">>> id.replace(timestamp_ms=1_700_000_000_000).timestamp_ms")]
                /// 1700000000000
                ///
                /// :raises ArgumentError: a value of the wrong type.
                /// :raises FieldError: ``time.naive``, ``time.range``, ``field.range`` or ``field.format``.
                #[pyo3(signature = (*unnamed, **fields), text_signature = "($self, **fields)")]
                fn replace(&self, unnamed: &Bound<'_, PyTuple>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                    fields::replace(*self, unnamed, fields)
                }
            }
        }

        impl fields::HasFields for $class {}

        impl ticked::TickedClass for Generator {
            type Id = $class;

            #[inline(always)]
            fn ticking(&self) -> &Ticking<$core> {
                &self.ticking
            }

            fn of_ticking(ticking: Ticking<$core>) -> Self {
                Self { ticking }
            }
        }

        packed_generator! {
            $(#[$about])*
            pub struct Generator in $module, leased on request { ticking: Ticking<$core> }
            mints $class in $word, $size bytes, by ("")
            new_at: $numbers
            nth_at: $nth

            #[new]
            #[pyo3(signature = ($term = None, **keywords))]
            fn py_new(
                py: Python<'_>,
                $term: Option<&Bound<'_, PyAny>>,
                keywords: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Self> {
                let made = Self { ticking: Ticking::new(py, $term, keywords)? };
                generator::attach_without_lease(&made, py)?;
                Ok(made)
            }

            /// Mint an ID.
            ///
            #[doc = concat!(">>> from mintage import ", $word)]
            #[doc = concat!(">>> generator = ", $word, ".Generator()")]
            /// >>> generator.new() < generator.new()
            /// True
            ///
            /// :raises GenerationError: ``sequence.exhausted`` when it would wait longer than ``max_wait_ms``; ``clock.range``,
            ///     ``fork.shared_node``, ``generator.closed``, ``system.random``.
            #[pyo3(name = "new")]
            fn mint_one(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                hot::new_object_slow(slf, 0)
            }

            /// The number of IDs in a tick.
            #[getter]
            fn capacity(&self) -> u32 {
                1 << <$core as mintage_core::ticked::Ticked>::SEQUENCE_BITS
            }

            /// The node number in its IDs, in place of random bits; None if it was neither given nor leased.
            ///
            /// :raises GenerationError: ``system.random``.
            #[getter]
            fn $term(slf: &Bound<'_, Self>) -> PyResult<Option<u64>> {
                Ok(generator::attach_to_read(slf)?.get().ticking.node())
            }

            fn __repr__(&self) -> String {
                concat!("<", $word, ".Generator>").into()
            }
        }

        $crate::id::bounds! { $class in $word, "ID of the tick", by ticked::bound }

        /// Puts the classes and functions into the format's module.
        pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            module.add_class::<$class>()?;
            module.add_class::<Array>()?;
            module.add_class::<Generator>()?;
            module.add_function(wrap_pyfunction!(min_at, module)?)?;
            module.add_function(wrap_pyfunction!(max_at, module)?)?;
            hot::install_id::<$class>(py)?;
            fields::install::<$class>(py, &[<$core as mintage_core::id::Id>::FORMAT])?;
            hot::install_array::<Array>(py);
            generator::install::<Generator>(py, concat!(stringify!($term), "=None, *"))
        }
    };
}
pub(crate) use ticked;
