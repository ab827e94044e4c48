//! Tests of the open stack, by itself and, under loom, with a concurrent reader.

use super::*;

fn entry(start: u64) -> OpenEntry {
    OpenEntry {
        start,
        name: start as u32,
        stack: start as u32,
        inputs: start as u32,
    }
}

#[cfg(not(loom))]
mod plain {
    use super::*;

    fn starts(stack: &OpenStack) -> Vec<u64> {
        stack
            .snapshot()
            .entries
            .iter()
            .map(|entry| entry.start)
            .collect()
    }

    #[test]
    fn a_snapshot_holds_what_is_open_outermost_first() {
        let stack = OpenStack::new();
        let indices: Vec<u32> = (1..=3).map(|start| stack.push(entry(start))).collect();
        stack.pop(indices[2]);
        assert_eq!(starts(&stack), [1, 2]);
    }

    #[test]
    fn closing_out_of_order_leaves_the_others_open() {
        let stack = OpenStack::new();
        let indices: Vec<u32> = (1..=3).map(|start| stack.push(entry(start))).collect();
        stack.pop(indices[1]);
        assert_eq!(starts(&stack), [1, 3]);
        stack.pop(indices[2]);
        assert_eq!(starts(&stack), [1]);
        assert_eq!(
            stack.push(entry(9)),
            1,
            "the slot of the closed one is free again"
        );
    }

    #[test]
    fn a_full_stack_uses_closed_slots_before_it_grows() {
        let stack = OpenStack::new();
        let indices: Vec<u32> = (1..=FIRST as u64).map(|n| stack.push(entry(n))).collect();
        let last = FIRST - 1;
        indices[..last].iter().for_each(|index| stack.pop(*index));
        assert_eq!(starts(&stack), [FIRST as u64]);
        let again: Vec<u32> = (0..last as u64)
            .map(|n| stack.push(entry(n + 5_000)))
            .collect();
        assert_eq!(again, indices[..last]);
        assert_eq!(starts(&stack).len(), FIRST);
        assert!(starts(&stack).is_sorted());
        stack.pop(indices[last]);
        for index in again {
            stack.pop(index);
        }
        assert_eq!(stack.snapshot(), OpenSnapshot::default());
    }

    #[test]
    fn a_list_of_slots_that_the_stack_came_back_to_is_made_anew() {
        let stack = OpenStack::new();
        budget::set_limit(1 << 20);
        let mut open: Vec<u32> = (1..=FIRST as u64).map(|n| stack.push(entry(n))).collect();
        let last = open.pop().unwrap();
        open.drain(10..).for_each(|index| stack.pop(index));
        let low = stack.push(entry(2_000));
        // The stack shrinks below slots of the free list and grows over them again.
        stack.pop(last);
        let more: Vec<u32> = (0..FIRST as u64)
            .map(|n| stack.push(entry(n + 3_000)))
            .collect();
        let mut used: Vec<u32> = open.iter().chain([&low]).chain(&more).copied().collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 10 + 1 + FIRST, "no two scopes share a slot");
        assert_eq!(starts(&stack).len(), used.len());
    }

    #[test]
    fn scopes_that_the_budget_has_no_slots_for_are_counted() {
        let stack = OpenStack::new();
        budget::set_limit(0);
        let mut indices: Vec<u32> = (1..=FIRST as u64 + 3)
            .map(|n| stack.push(entry(n)))
            .collect();
        let (open, deeper) = (stack.snapshot().entries.len(), stack.snapshot().deeper);
        assert_eq!((open, deeper), (FIRST, 3));
        indices.rotate_left(7);
        for index in indices {
            stack.pop(index);
        }
        assert_eq!(stack.snapshot(), OpenSnapshot::default());
    }
}

#[cfg(loom)]
#[test]
fn a_snapshot_never_mixes_two_scopes() {
    loom::model(|| {
        let stack = loom::sync::Arc::new(OpenStack::new());
        let reader = {
            let stack = stack.clone();
            loom::thread::spawn(move || {
                for entry in stack.snapshot().entries {
                    assert_eq!(entry.start, u64::from(entry.name));
                    assert_eq!(entry.name, entry.stack);
                }
            })
        };
        for start in 1..3 {
            let index = stack.push(entry(start));
            stack.pop(index);
        }
        reader.join().unwrap();
    });
}

#[cfg(loom)]
#[test]
fn a_slot_that_is_used_again_never_mixes_two_scopes() {
    loom::model(|| {
        let stack = loom::sync::Arc::new(OpenStack::new());
        let below = stack.push(entry(1));
        stack.push(entry(2));
        let reader = {
            let stack = stack.clone();
            loom::thread::spawn(move || {
                for entry in stack.snapshot().entries {
                    assert_eq!(entry.start, u64::from(entry.name));
                    assert_eq!(entry.name, entry.stack);
                }
            })
        };
        stack.pop(below);
        assert_eq!(stack.push(entry(3)), below);
        reader.join().unwrap();
    });
}
