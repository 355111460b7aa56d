//! Which slot of one of the tracker's tables an entry is in. A table is an array of a power of two entries with a fixed
//! number of words, of which the first is the key, not 0. An entry whose first slot is taken is in the next free one.

/// Spreads keys over slots; the same number as `SPREAD` in the tracker.
pub(crate) const SPREAD: i64 = 0x9E37_79B9_7F4A_7C15_u64.cast_signed();

/// The number whose product with [`SPREAD`] is 1.
const UNSPREAD: i64 = inverse(SPREAD);

/// Bits of an edge's key below its node.
const BELOW_NODE: u32 = 33;

/// The first slot of a key in a table of so many entries; as in the tracker.
pub(crate) type FirstSlot = fn(key: i64, entries: usize) -> usize;

/// The first slot of an allocation site.
pub(crate) fn of_site(key: i64, entries: usize) -> usize {
    let product = key.wrapping_mul(SPREAD).cast_unsigned();
    (product >> (u64::BITS - entries.trailing_zeros())) as usize
}

/// The first slot of an edge.
pub(crate) fn of_edge(key: i64, entries: usize) -> usize {
    (key.cast_unsigned() >> BELOW_NODE) as usize & (entries - 1)
}

/// Where the entry of `key` begins in a table with entries of `stride` words, or the empty entry where it belongs.
pub(crate) fn find_entry(first: FirstSlot, table: &[i64], stride: usize, key: i64) -> usize {
    let entries = table.len() / stride;
    let mut at = first(key, entries);
    loop {
        let found = table[at * stride];
        if found == key || found == 0 {
            return at * stride;
        }
        at = (at + 1) % entries;
    }
}

/// A table of so many entries that has the entries of another one, which must fit.
pub(crate) fn rebuild(first: FirstSlot, table: &[i64], stride: usize, entries: usize) -> Vec<i64> {
    let mut new = vec![0; stride * entries];
    for entry in table.chunks_exact(stride).filter(|entry| entry[0] != 0) {
        let at = find_entry(first, &new, stride, entry[0]);
        new[at..at + stride].copy_from_slice(entry);
    }
    new
}

/// What inserted code passes for a method with this number.
pub(crate) fn spread_method(number: u32) -> i64 {
    i64::from(number).wrapping_mul(SPREAD)
}

/// The node and the number of the method in the key of an edge: `node << 33 ^ spread_method(method)`.
pub(crate) fn node_and_method(key: i64) -> (u32, u32) {
    // The node does not change the lower bits, so neither does it change those of the product.
    let method = key.wrapping_mul(UNSPREAD) as u32;
    let node = (key ^ spread_method(method)).cast_unsigned() >> BELOW_NODE;
    (node as u32, method)
}

/// The inverse of an odd number modulo 2^64 (each step of Newton's method doubles the number of correct bits).
const fn inverse(odd: i64) -> i64 {
    let mut found = odd;
    let mut step = 0;
    while step < 5 {
        found = found.wrapping_mul(2_i64.wrapping_sub(odd.wrapping_mul(found)));
        step += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_table_finds_every_key() {
        for first in [of_site as FirstSlot, of_edge] {
            let mut table = vec![0; 16 * 4];
            let keys: Vec<i64> = (1..9).map(|i| i * 0x1234_5678_9abc).collect();
            for key in &keys {
                let at = find_entry(first, &table, 4, *key);
                table[at] = *key;
                table[at + 1] = key ^ 1;
            }
            let larger = rebuild(first, &table, 4, 32);
            for key in keys {
                let at = find_entry(first, &larger, 4, key);
                assert_eq!((larger[at], larger[at + 1]), (key, key ^ 1));
            }
        }
    }

    #[test]
    fn the_key_of_an_edge_has_its_node_and_method() {
        for (node, method) in [(0, 1), (1, 0), (0x7fff_ffff, u32::MAX), (12, 345_678)] {
            let key = i64::from(node) << BELOW_NODE ^ spread_method(method);
            assert_eq!(node_and_method(key), (node, method));
        }
    }
}
