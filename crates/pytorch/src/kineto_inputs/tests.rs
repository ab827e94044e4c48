use super::*;
use crate::kineto_stand_in::{StandInEvent, StandInResult};

const INT: u32 = 4;
const DOUBLE: u32 = 2;
const BOOL: u32 = 5;
const LIST: u32 = 12;

fn text(text: &'static str) -> Text {
    Text::new(text.as_ptr(), text.len())
}

fn numbers(numbers: &[i64]) -> Numbers {
    let bounds = numbers.as_ptr_range();
    Numbers {
        begin: bounds.start,
        end: bounds.end,
        _room: bounds.end,
    }
}

fn nested<T>(elements: &[T], kind: u8) -> Nested {
    let bounds = elements.as_ptr_range();
    Nested {
        begin: bounds.start.cast(),
        end: bounds.end.cast(),
        _room: bounds.end.cast(),
        kind,
    }
}

/// Returns a list as torch lays it out: the owner count, then the begin and end of its values.
fn list(values: &[Value]) -> [u64; 8] {
    let bounds = values.as_ptr_range();
    [0, 1, bounds.start as u64, bounds.end as u64, 0, 0, 0, 0]
}

/// Calls `check` with an event whose inputs are a tensor, a list of two tensors, and a value of
/// each kind.
fn with_event(check: impl FnOnce(&KinetoEvents<'_>, &[(usize, usize, KnownValue)])) {
    let elements = [Value::new(7, INT), Value::new(9, INT)];
    let list = list(&elements);
    let types = [
        "float",
        "TensorList",
        "Scalar",
        "Scalar",
        "Scalar",
        "ScalarList",
        "",
    ];
    let types = types.map(text);
    let none = Value::new(0, 0);
    let values = [
        none,
        none,
        Value::new(3, INT),
        Value::new(0.5_f64.to_bits(), DOUBLE),
        // The bytes behind the Boolean's own are meaningless.
        Value::new(0xff00 + 1, BOOL),
        Value::new(list.as_ptr() as u64, LIST),
        none,
    ];
    let (sizes, strides) = ([2_i64, 3], [3_i64, 1]);
    let dims = [&sizes[..], &[], &[], &[], &[], &[], &[]].map(numbers);
    let each = [numbers(&sizes), numbers(&sizes[..1])];
    let each_strides = [numbers(&strides)];
    let nested_dims = [nested(&sizes, 0), nested(&each, 1)];
    let nested_strides = [nested(&strides, 0), nested(&each_strides, 1)];
    let mut event = StandInEvent::new(1, "aten::given");
    event.dims = Array::of(&dims);
    event.types = Array::of(&types);
    event.values = Array::of(&values);
    event.nested_dims = Array::of(&nested_dims);
    event.nested_strides = Array::of(&nested_strides);
    let events = [event, StandInEvent::new(2, "aten::nothing")];
    let result = StandInResult::new(1, &events);
    let known = [
        (0, 2, KnownValue::Int(3)),
        (0, 3, KnownValue::Float(0.5)),
        (0, 4, KnownValue::Bool(true)),
        (0, 5, KnownValue::Ints(vec![7, 9])),
    ];
    check(&result.open(), &known);
}

#[test]
fn inputs_are_written_as_they_were_given() {
    with_event(|events, known| {
        let layout = KinetoValues::learn(events, known).unwrap();
        assert_eq!(layout.list_values, 16);
        let mut found = InputsEncoder::default();
        events.inputs(0).write(&layout, &mut found);
        let mut expected = InputsEncoder::default();
        expected.tensor(DType::F32, &[2, 3], &[3, 1]);
        expected.tensor_list(2);
        expected.tensor(DType::Unknown, &[2, 3], &[3, 1]);
        expected.tensor(DType::Unknown, &[2], &[]);
        expected.int(3);
        expected.float(0.5);
        expected.bool(true);
        expected.int_list(&[7, 9]);
        expected.other();
        assert_eq!(found.words(), expected.words());
        let mut nothing = InputsEncoder::default();
        events.inputs(1).write(&layout, &mut nothing);
        assert!(nothing.words().is_empty());
    });
}

#[test]
fn a_complex_number_is_learnt_where_it_is_found() {
    let number = [0, 1, 3.0_f64.to_bits(), 4.0_f64.to_bits()];
    let values = [Value::new(number.as_ptr() as u64, 9), Value::new(3, INT)];
    let find = |known| ComplexNumbers::find(9, number, known);
    let found = find((3.0, 4.0));
    assert_eq!(found, Some(ComplexNumbers { tag: 9, offset: 16 }));
    assert_eq!(find((4.0, 3.0)), None);
    let tags = Tags {
        int: INT,
        complex: found,
        ..Tags::default()
    };
    let (mut inputs, mut expected) = (InputsEncoder::default(), InputsEncoder::default());
    write_numbers(&values, &tags, &mut inputs);
    expected.number_list(2);
    expected.complex(3.0, 4.0);
    expected.int(3);
    assert_eq!(inputs.words(), expected.words());
}

#[test]
fn values_that_are_others_are_refused() {
    with_event(|events, known| {
        for (place, other) in [
            (0, KnownValue::Int(4)),
            (1, KnownValue::Float(0.25)),
            (2, KnownValue::Bool(false)),
            (3, KnownValue::Ints(vec![7, 8])),
            (3, KnownValue::Ints(vec![7, 9, 0])),
        ] {
            let mut known = known.to_vec();
            known[place].2 = other;
            assert!(KinetoValues::learn(events, &known).is_err(), "{known:?}");
        }
        for missing in 0..known.len() {
            let mut known = known.to_vec();
            known.remove(missing);
            assert!(KinetoValues::learn(events, &known).is_err(), "{known:?}");
        }
        let beyond = [(0, 70, KnownValue::Int(3))];
        assert!(KinetoValues::learn(events, &beyond).is_err());
    });
}
