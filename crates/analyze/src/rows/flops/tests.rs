use mindprof_model::{DType, Event, InputsEncoder, Nanos, Part, StringTable, Thread};
use proptest::prelude::*;

use super::*;
use crate::links::correlate::Correlation;
use crate::rows::keys::Keys;

fn counted(name: &str, encode: impl FnOnce(&mut InputsEncoder)) -> u64 {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: mindprof_model::DeviceKind::Cpu,
    });
    let mut encoder = InputsEncoder::default();
    encode(&mut encoder);
    let name = builder.strings.intern(name);
    let mut event = Event::new(Category::Operator, name, thread, Nanos(0), Nanos(1));
    event.inputs = builder.inputs.intern(encoder.words());
    builder.add_event(event);
    let profile = builder.into_profile().unwrap();
    Flops::new(profile.strings()).count(&profile, EventId::from_index(0))
}

fn tensors(shapes: &[&[usize]]) -> impl FnOnce(&mut InputsEncoder) {
    move |encoder| {
        for dims in shapes {
            encoder.tensor(DType::F32, dims, &vec![1; dims.len()]);
        }
    }
}

fn convolution_of(
    input: [usize; 4],
    weight: [usize; 4],
    [stride, padding, dilation]: [i64; 3],
) -> u64 {
    counted("aten::conv2d", |encoder| {
        tensors(&[&input, &weight])(encoder);
        encoder.other();
        for both in [stride, padding, dilation] {
            encoder.int_list(&[both, both]);
        }
        encoder.int(1);
    })
}

#[test]
fn products_count_two_per_multiplication() {
    assert_eq!(counted("aten::mm", tensors(&[&[3, 4], &[4, 5]])), 120);
    assert_eq!(
        counted("aten::addmm", tensors(&[&[5], &[3, 4], &[4, 5]])),
        120
    );
    assert_eq!(
        counted("aten::bmm", tensors(&[&[2, 3, 4], &[2, 4, 5]])),
        240
    );
    assert_eq!(
        counted(
            "aten::baddbmm",
            tensors(&[&[2, 3, 5], &[2, 3, 4], &[2, 4, 5]])
        ),
        240
    );
    assert_eq!(counted("aten::mm", tensors(&[&[0, 4], &[4, 5]])), 0);
}

#[test]
fn convolutions_count_by_output_position() {
    assert_eq!(
        convolution_of([2, 3, 8, 8], [4, 3, 3, 3], [1, 0, 1]),
        15_552
    );
    assert_eq!(convolution_of([2, 4, 8, 8], [6, 2, 3, 3], [2, 1, 1]), 6_912);
    assert_eq!(
        convolution_of([1, 3, 10, 10], [4, 3, 3, 3], [1, 0, 2]),
        7_776
    );
    assert_eq!(convolution_of([1, 3, 10, 10], [4, 3, 3, 3], [0, 0, 1]), 0);
    assert_eq!(
        counted("aten::conv2d", tensors(&[&[3, 8, 8], &[4, 3, 3, 3]])),
        0
    );
}

#[test]
fn elementwise_operators_count_their_first_input() {
    assert_eq!(counted("aten::mul", tensors(&[&[3, 4], &[3, 4]])), 12);
    assert_eq!(counted("aten::add", tensors(&[&[3, 1], &[1, 4]])), 3);
    assert_eq!(counted("aten::mul", tensors(&[&[], &[4]])), 1);
    assert_eq!(counted("aten::mul_", tensors(&[&[3, 4]])), 0);
    assert_eq!(counted("aten::mul", |encoder| encoder.int(3)), 0);
}

// linear |-----------|            0..30   addmm inside is counted
// addmm     |---|                10..20
// relu                 |---|     40..50   not counted
// empty                     |-|  60..70   was given no tensor
#[test]
fn operators_without_a_formula_are_listed() {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: mindprof_model::DeviceKind::Cpu,
    });
    let mut encoder = InputsEncoder::default();
    tensors(&[&[5], &[3, 4], &[4, 5]])(&mut encoder);
    let given = builder.inputs.intern(encoder.words());
    for (name, start, duration, inputs) in [
        ("aten::linear", 0, 30, given),
        ("aten::addmm", 10, 10, given),
        ("aten::relu", 40, 10, given),
        ("aten::empty", 60, 10, InputsId::NONE),
    ] {
        let name = builder.strings.intern(name);
        let (start, duration) = (Nanos(start), Nanos(duration));
        let mut event = Event::new(Category::Operator, name, thread, start, duration);
        event.inputs = inputs;
        builder.add_event(event);
    }
    let profile = builder.into_profile().unwrap();
    let keys = Keys::build(profile.strings());
    let tree = Tree::build(&profile, &keys, &Correlation::default());
    assert_eq!(uncounted(&profile, &tree), [EventId::from_index(2)]);
}

proptest! {
    #[test]
    fn no_size_causes_a_panic(sizes: [u32; 8], more: [i64; 3]) {
        let sizes = sizes.map(|size| size as usize);
        let [a, b, c, d, e, f, g, h] = sizes;
        convolution_of([a, b, c, d], [e, f, g, h], more);
        counted("aten::bmm", tensors(&[&[a, b, c], &[d, e, f]]));
    }
}
