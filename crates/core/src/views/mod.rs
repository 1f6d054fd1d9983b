//! Views: other ways to write any ID. A view has no layout of its own, so it is no scheme.

pub mod opaque;
pub mod text;
pub mod typeid;
