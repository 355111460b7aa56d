//! Graph algorithms that all dialects use: what a set of objects retains, and the path from a root to an object.

use crate::error::QueryError;
use crate::shared::{BLOCK, Env};
use heap_analysis::paths::{Exclusions, PathOptions, to_roots};
use heap_graph::{Bits, ObjIdx};
use hprof::HeapTag;

/// The objects that would be freed together with all objects of a set, including these, by id. For one object this is
/// its dominator subtree; for more, everything that roots reach only through the set.
pub(crate) fn retained_set(env: &Env, set: &[ObjIdx]) -> Result<Vec<ObjIdx>, QueryError> {
    let heap = &env.heap;
    let mut set: Vec<ObjIdx> = set
        .iter()
        .copied()
        .filter(|o| heap.is_reachable(*o))
        .collect();
    set.sort_unstable();
    set.dedup();
    if let [one] = set[..] {
        return subtree(env, one);
    }
    if set.is_empty() {
        return Ok(set);
    }
    let kept = reachable_without(env, &set)?;
    let all = (0..heap.len()).map(ObjIdx);
    Ok(all
        .filter(|o| !kept.contains(o.0) && heap.is_reachable(*o))
        .collect())
}

/// An object and everything that it dominates, by id.
pub(crate) fn subtree(env: &Env, top: ObjIdx) -> Result<Vec<ObjIdx>, QueryError> {
    let mut found = vec![top];
    let mut at = 0;
    while let Some(object) = found.get(at).copied() {
        at += 1;
        if at % BLOCK == 0 {
            env.stop.check()?;
        }
        // A tree has each object once; a damaged index must not cause an endless loop.
        if found.len() as u64 <= env.heap.len() {
            found.extend(env.heap.dominated(Some(object)));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn reachable_without(env: &Env, set: &[ObjIdx]) -> Result<Bits, QueryError> {
    let heap = &env.heap;
    let mut marks = Bits::new(heap.len());
    let strength = heap.summary().strength;
    let is_cut = |o: &ObjIdx| set.binary_search(o).is_ok();
    let roots = heap.roots().iter();
    let roots = roots.filter(|r| r.kind != HeapTag::RootUnreachable && !heap.is_held_by_thread(r));
    let mut open: Vec<ObjIdx> = roots.map(|r| r.object).collect();
    open.retain(|o| !is_cut(o) && marks.insert(o.0));
    let mut looked_at = 0;
    while let Some(object) = open.pop() {
        looked_at += 1;
        if looked_at % BLOCK == 0 {
            env.stop.check()?;
        }
        for reference in heap.outbound(object)? {
            let target = reference.target;
            if strength.counts(reference.strength) && !is_cut(&target) && marks.insert(target.0) {
                open.push(target);
            }
        }
    }
    Ok(marks)
}

/// The shortest path from a root down to an object, without soft, weak, phantom and final
/// referents if there is such a path; empty for unreachable objects.
pub(crate) fn path_to_root(env: &Env, object: ObjIdx) -> Result<Vec<ObjIdx>, QueryError> {
    let heap = &env.heap;
    if !heap.is_reachable(object) {
        return Ok(Vec::new());
    }
    // The first call builds the table of referrers, which takes a pass over the dump.
    env.stop
        .within(|control| heap.inbound_with(object, control))?;
    for exclude in [Exclusions::ALL, Exclusions::default()] {
        let options = PathOptions { count: 1, exclude };
        let found = env
            .stop
            .within(|control| to_roots(heap, object, &options, control))?;
        if let Some(path) = found.paths.first() {
            let ids = path.steps.iter().map(|s| s.object.object.0);
            return Ok(ids.filter_map(|id| heap.find(id)).collect());
        }
    }
    Ok(Vec::new())
}
