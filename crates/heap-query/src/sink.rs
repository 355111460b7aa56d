//! Where the rows of a query go.

use crate::cell::Cell;

/// Receives rows one by one, as they are found.
pub trait Sink {
    /// Called once, before the first row.
    fn columns(&mut self, names: &[String]);
    /// Receives a row, as long as the columns. False ends the query.
    fn row(&mut self, cells: Vec<Cell>) -> bool;
    /// Receives, after the rows, a note on the result, such as that the dump does not have a class of the query.
    fn note(&mut self, text: &str) {
        let _ = text;
    }
}
