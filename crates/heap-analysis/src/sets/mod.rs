//! Sets of objects: how a set is named ([`spec`]) and found ([`set`]), the bits that represent it ([`selection`]), its objects as
//! pages and groups ([`members`]), and a set whose members have dense numbers (`object_set`). [`similar`] finds the name
//! that was probably meant.

pub mod members;
pub(crate) mod object_set;
pub(crate) mod part;
pub mod scope;
pub mod selection;
pub mod set;
pub mod similar;
pub mod spec;
