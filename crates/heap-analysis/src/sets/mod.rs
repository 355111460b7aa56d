//! Sets of objects: how a set is named and found ([`set`]), the bits that represent it ([`selection`]), its objects as
//! pages and groups ([`members`]), and a set whose members have dense numbers (`object_set`).

pub mod members;
pub(crate) mod object_set;
pub mod selection;
pub mod set;
