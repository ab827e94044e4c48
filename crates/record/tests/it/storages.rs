//! The storage addresses and the roles of tensors.

use std::sync::Barrier;
use std::thread;

use mindprof_model::{DType, EventId, Profile, TensorRole};
use mindprof_record::{
    InputsRewriter, Options, Session, Site, scope_with, tensor_role, wants_storages,
};
use proptest::prelude::*;

use super::record;

static OUTER: Site = Site::operator("outer");
static INNER: Site = Site::operator("inner");

fn with_storages() -> Options {
    Options {
        inputs: true,
        memory: true,
        ..Options::default()
    }
}

fn tensors(addresses: &[u64]) -> impl FnOnce(&mut InputsRewriter<'_>) {
    move |encoder| {
        for &address in addresses {
            encoder.storage(address);
            encoder.tensor(DType::F32, &[2], &[1]);
        }
    }
}

fn found(profile: &Profile) -> Vec<(&str, &[u64])> {
    (0..profile.events().len())
        .map(|index| {
            let event = profile.event(EventId::from_index(index));
            (profile.name(event), profile.storages().of(index))
        })
        .collect()
}

#[test]
fn every_scope_has_the_addresses_of_its_own_tensors() {
    let profile = record(with_storages(), || {
        let _outer = scope_with(&OUTER, tensors(&[1, 2, 3, 4, 5, 6]));
        drop(scope_with(&INNER, tensors(&[7])));
        drop(scope_with(&INNER, tensors(&[])));
        drop(scope_with(&INNER, tensors(&[u64::MAX - 1, 9])));
    });
    assert_eq!(
        found(&profile),
        [
            ("outer", &[1, 2, 3, 4, 5, 6][..]),
            ("inner", &[7]),
            ("inner", &[]),
            ("inner", &[u64::MAX - 1, 9]),
        ]
    );
}

#[test]
fn equal_inputs_at_other_places_are_held_once() {
    let profile = record(with_storages(), || {
        for address in 1..=9 {
            drop(scope_with(&INNER, tensors(&[address])));
        }
    });
    assert_eq!(
        profile.inputs().len(),
        2,
        "the empty list and the one that was given"
    );
    let addresses: Vec<_> = (0..9)
        .flat_map(|index| profile.storages().of(index))
        .collect();
    assert_eq!(
        addresses,
        (1..=9).collect::<Vec<_>>().iter().collect::<Vec<_>>()
    );
}

#[test]
fn only_a_window_with_inputs_and_memory_has_them() {
    for (inputs, memory) in [(false, true), (true, false)] {
        let options = Options {
            inputs,
            memory,
            ..Options::default()
        };
        let wanting = Session::start(with_storages());
        let plain = Session::start(options);
        assert!(wants_storages());
        drop(scope_with(&INNER, tensors(&[5])));
        tensor_role(TensorRole::Parameter, 5, 8);
        let (plain, wanting) = (plain.stop().assemble(), wanting.stop().assemble());
        assert_eq!(found(&plain), [("inner", &[][..])]);
        assert!(plain.roles().is_empty());
        assert_eq!(found(&wanting), [("inner", &[5][..])]);
        assert_eq!(wanting.roles().len(), 1);
    }
    assert!(!wants_storages());
}

#[test]
fn threads_beyond_what_any_table_holds_have_their_addresses() {
    const THREADS: u64 = 150;
    let profile = record(with_storages(), || {
        let barrier = Barrier::new(THREADS as usize);
        thread::scope(|threads| {
            for own in 1..=THREADS {
                let barrier = &barrier;
                threads.spawn(move || {
                    // All threads live at the same time.
                    barrier.wait();
                    drop(scope_with(&OUTER, tensors(&[own, own + 1])));
                    drop(scope_with(&OUTER, tensors(&[own, own + 1])));
                    barrier.wait();
                });
            }
        });
    });
    let mut found: Vec<&[u64]> = found(&profile).into_iter().map(|(_, list)| list).collect();
    found.sort_unstable();
    let expected: Vec<[u64; 2]> = (1..=THREADS).flat_map(|own| [[own, own + 1]; 2]).collect();
    assert_eq!(found, expected);
}

#[test]
fn roles_are_told_with_address_and_size() {
    let profile = record(with_storages(), || {
        let _op = scope_with(&OUTER, |_| ());
        for (address, role) in TensorRole::ALL.into_iter().enumerate() {
            tensor_role(role, address as u64, u64::MAX - 1);
        }
    });
    let roles = profile.roles().iter();
    let told: Vec<_> = roles
        .map(|role| (role.role, role.address, role.bytes))
        .collect();
    let bytes = u64::MAX - 1;
    assert_eq!(
        told,
        [
            (TensorRole::Parameter, 0, bytes),
            (TensorRole::Gradient, 1, bytes),
            (TensorRole::OptimizerState, 2, bytes),
        ]
    );
}

#[test]
fn a_window_knows_addresses_that_were_written_before_it_opened() {
    let first = Session::start(with_storages());
    drop(scope_with(&INNER, tensors(&[5])));
    let second = Session::start(with_storages());
    drop(scope_with(&INNER, tensors(&[5])));
    assert_eq!(found(&second.stop().assemble()), [("inner", &[5][..])]);
    let both = [("inner", &[5][..]), ("inner", &[5])];
    assert_eq!(found(&first.stop().assemble()), both);
}

#[test]
fn a_scope_that_began_while_nobody_asked_has_none() {
    let plain = Session::start(Options {
        inputs: true,
        ..Options::default()
    });
    let first = Session::start(with_storages());
    drop(scope_with(&INNER, tensors(&[5])));
    drop(first.stop());
    drop(scope_with(&INNER, tensors(&[6])));
    let second = Session::start(with_storages());
    drop(scope_with(&INNER, tensors(&[5])));
    assert_eq!(found(&second.stop().assemble()), [("inner", &[5][..])]);
    assert_eq!(plain.stop().assemble().events().len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn scopes_of_any_names_and_tensors_have_their_own_addresses(
        given in prop::collection::vec((0..2_usize, prop::collection::vec(1_u64..3, 0..5)), 0..40),
        depth in 0_usize..4,
    ) {
        static SITES: [&Site; 2] = [&OUTER, &INNER];
        let profile = record(with_storages(), || {
            let mut open = Vec::new();
            for (site, addresses) in &given {
                open.truncate(depth);
                open.push(scope_with(SITES[*site], tensors(addresses)));
            }
            while open.pop().is_some() {}
        });
        let expected = given.iter().map(|(site, addresses)| {
            (["outer", "inner"][*site], addresses.as_slice())
        });
        prop_assert_eq!(found(&profile), expected.collect::<Vec<_>>());
    }

    #[test]
    fn addresses_that_there_is_no_room_for_cost_no_event(
        budget_bytes in 0_usize..6_000,
        scopes in 0_u64..60,
        width in 0_u64..9,
    ) {
        let options = Options { budget_bytes, ..with_storages() };
        let profile = record(options, || {
            for index in 0..scopes {
                let addresses: Vec<u64> = (0..width).map(|place| index * 10 + place + 1).collect();
                drop(scope_with(&INNER, tensors(&addresses)));
            }
        });
        prop_assert_eq!(profile.events().len() as u64 + profile.loss().total(), scopes);
        for index in 0..profile.events().len() {
            let addresses = profile.storages().of(index);
            prop_assert!(addresses.is_empty() || addresses.len() as u64 == width);
            let is_one_scope = addresses.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            prop_assert!(is_one_scope, "{:?}", addresses);
        }
    }
}
