//! Checks that operators nest as in torch and record the same inputs. `tests/nesting/torch.txt` is
//! recorded from torch itself.
//!
//! The recorder is process-wide and records all threads, so this test needs a process of its own,
//! which nextest provides.

use mindprof_model::{Event, Input, Profile};
use mindprof_record::{Options, Session};
use mindtorch_tensor::DType::{F32, F64, I32, I64};
use mindtorch_tensor::{KeepDims, Result, Scalar, Tensor};

#[test]
fn operators_nest_and_record_inputs_as_torch_does() {
    let operands = Operands::build().unwrap();
    let cases = include_str!("../nesting/torch.txt").split("# ").skip(1);
    let mut differences = String::new();
    for case in cases {
        let (expression, expected) = case.split_once('\n').unwrap();
        let found = record(|| {
            operands.evaluate(expression).unwrap();
        });
        if found != expected {
            differences.extend([
                "# ",
                expression,
                "\ntorch:\n",
                expected,
                "here:\n",
                &found,
                "\n",
            ]);
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

struct Operands {
    x: Tensor,
    row: Tensor,
    batch: Tensor,
    i: Tensor,
    i32: Tensor,
    zero_dim: Tensor,
}

impl Operands {
    fn build() -> Result<Self> {
        Ok(Self {
            x: Tensor::ones(&[4, 4], None)?,
            row: Tensor::ones(&[4], None)?,
            batch: Tensor::ones(&[2, 4, 4], None)?,
            i: Tensor::ones(&[4, 4], Some(I64))?,
            i32: Tensor::ones(&[4, 4], Some(I32))?,
            zero_dim: Tensor::full(&[], Scalar::Float(2.0), None)?,
        })
    }

    #[expect(clippy::too_many_lines, reason = "one line per expression")]
    fn evaluate(&self, expression: &str) -> Result<()> {
        let Self {
            x,
            row,
            batch,
            i,
            i32,
            zero_dim,
        } = self;
        if expression == "zero_dim.item()" {
            return zero_dim.item().map(drop);
        }
        let result = match expression {
            "torch.ones(2, 3)" => Tensor::ones(&[2, 3], None),
            "torch.ones(2, dtype=torch.int64)" => Tensor::ones(&[2], Some(I64)),
            "torch.zeros(2, 3)" => Tensor::zeros(&[2, 3], None),
            "torch.zeros(2, dtype=torch.int64)" => Tensor::zeros(&[2], Some(I64)),
            "torch.zeros(0)" => Tensor::zeros(&[0], None),
            "torch.zeros(32767)" => Tensor::zeros(&[32767], None),
            "torch.zeros(32768)" => Tensor::zeros(&[32768], None),
            "torch.full((2, 3), 1.5)" => Tensor::full(&[2, 3], Scalar::Float(1.5), None),
            "torch.full((2,), 2)" => Tensor::full(&[2], Scalar::Int(2), None),
            "torch.full((2,), True)" => Tensor::full(&[2], Scalar::Bool(true), None),
            "torch.empty(2, 3)" => Tensor::empty(&[2, 3], None),
            "torch.randn(2, 3)" => Tensor::randn(&[2, 3], None),
            "torch.randn(2, dtype=torch.float64)" => Tensor::randn(&[2], Some(F64)),
            "torch.tensor([[1.0, 2.0], [3.0, 4.0]])" => {
                Tensor::from_values(&[1.0, 2.0, 3.0, 4.0], &[2, 2], F32)
            }
            "torch.tensor(3)" => Tensor::from_values(&[3_i64], &[], I64),
            "torch.tensor([1.0, 2.0], dtype=torch.int64)" => {
                Tensor::from_values(&[1.0, 2.0], &[2], I64)
            }
            "x + x" => x.add(x),
            "x + row" => x.add(row),
            "x + 2" => x.add(2_i64),
            "x + 2.5" => x.add(2.5),
            "x + True" => x.add(true),
            "x + i" => x.add(i),
            "i + 1" => i.add(1_i64),
            "i + 1.5" => i.add(1.5),
            "i + zero_dim" => i.add(zero_dim),
            "x * zero_dim" => x.mul(zero_dim),
            "x.t() + x.t()" => x.t()?.add(&x.t()?),
            "torch.add(x, x, alpha=2)" => x.add_scaled(x, Scalar::Int(2)),
            "x - x" => x.sub(x),
            "x - 2" => x.sub(2_i64),
            "2 - x" => x.rsub(Scalar::Int(2)),
            "2 - i" => i.rsub(Scalar::Int(2)),
            "torch.rsub(i, 2.5)" => i.rsub(Scalar::Float(2.5)),
            "x * x" => x.mul(x),
            "i * 2" => i.mul(2_i64),
            "x / x" => x.div(x),
            "x / 2" => x.div(2_i64),
            "i / i" => i.div(i),
            "i / 2" => i.div(2_i64),
            "x.neg()" => x.neg(),
            "x.relu()" => x.relu(),
            "i.relu()" => i.relu(),
            "x.reciprocal()" => x.reciprocal(),
            "i.reciprocal()" => i.reciprocal(),
            "x.sum()" => x.sum(None, KeepDims::No, None),
            "x.sum(0)" => x.sum(Some(&[0]), KeepDims::No, None),
            "x.sum((0, 1), True)" => x.sum(Some(&[0, 1]), KeepDims::Yes, None),
            "x.sum((), False)" => x.sum(Some(&[]), KeepDims::No, None),
            "x.sum(dtype=torch.float64)" => x.sum(None, KeepDims::No, Some(F64)),
            "i.sum()" => i.sum(None, KeepDims::No, None),
            "i32.sum()" => i32.sum(None, KeepDims::No, None),
            "zero_dim.sum()" => zero_dim.sum(None, KeepDims::No, None),
            "torch.zeros(2, 0).sum(1)" => {
                Tensor::zeros(&[2, 0], None)?.sum(Some(&[1]), KeepDims::No, None)
            }
            "batch.sum((0, 2))" => batch.sum(Some(&[0, 2]), KeepDims::No, None),
            "batch.sum((0, 2), keepdim=True)" => batch.sum(Some(&[0, 2]), KeepDims::Yes, None),
            "x.t().sum(1)" => x.t()?.sum(Some(&[1]), KeepDims::No, None),
            "x.mean()" => x.mean(None, KeepDims::No, None),
            "x.mean(0)" => x.mean(Some(&[0]), KeepDims::No, None),
            "x.mean(1, keepdim=True)" => x.mean(Some(&[1]), KeepDims::Yes, None),
            "batch.mean((0, -1))" => batch.mean(Some(&[0, -1]), KeepDims::No, None),
            "zero_dim.mean()" => zero_dim.mean(None, KeepDims::No, None),
            "x.t()" => x.t(),
            "row.t()" => row.t(),
            "zero_dim.t()" => zero_dim.t(),
            "x.transpose(0, 1)" => x.transpose(0, 1),
            "batch.transpose(1, 1)" => batch.transpose(1, 1),
            "batch.transpose(-1, 0)" => batch.transpose(-1, 0),
            "x.expand(2, 4, 4)" => x.expand(&[2, 4, 4]),
            "x.expand(1, 2, 4, 4)" => x.expand(&[1, 2, 4, 4]),
            "x.expand(1, -1, 4)" => x.expand(&[1, -1, 4]),
            "row.expand(2, 1, 4)" => row.expand(&[2, 1, 4]),
            "x.view(2, 8)" => x.view(&[2, 8]),
            "x.view(-1)" => x.view(&[-1]),
            "x.reshape(2, 8)" => x.reshape(&[2, 8]),
            "x.reshape(-1)" => x.reshape(&[-1]),
            "x.t().reshape(16)" => x.t()?.reshape(&[16]),
            "x.t().reshape(-1, 8)" => x.t()?.reshape(&[-1, 8]),
            "x.t().reshape(4, 2, 2)" => x.t()?.reshape(&[4, 2, 2]),
            "x.t().contiguous()" => x.t()?.contiguous(),
            "x.contiguous()" => x.contiguous(),
            "x.clone()" => x.duplicate(),
            "x.t().clone()" => x.t()?.duplicate(),
            "row.expand(3, 4).clone()" => row.expand(&[3, 4])?.duplicate(),
            "x.to(torch.int64)" => x.to(I64),
            "x.to(torch.float32)" => x.to(F32),
            "x.t().to(torch.float64)" => x.t()?.to(F64),
            "x.unsqueeze(0)" => x.unsqueeze(0),
            "x.unsqueeze(-1)" => x.unsqueeze(-1),
            "x.t().unsqueeze(1)" => x.t()?.unsqueeze(1),
            "zero_dim.unsqueeze(0)" => zero_dim.unsqueeze(0),
            "x.squeeze(0)" => x.squeeze(0),
            "torch.ones(1, 4).squeeze(0)" => Tensor::ones(&[1, 4], None)?.squeeze(0),
            "x @ x" => x.matmul(x),
            "x @ x.t()" => x.matmul(&x.t()?),
            "x.t() @ x" => x.t()?.matmul(x),
            "x.t() @ x.t()" => x.t()?.matmul(&x.t()?),
            "i @ i" => i.matmul(i),
            "row.expand(4, 4) @ x" => row.expand(&[4, 4])?.matmul(x),
            "x @ row.expand(4, 4)" => x.matmul(&row.expand(&[4, 4])?),
            "torch.ones(4, 1) @ torch.ones(1, 4)" => {
                Tensor::ones(&[4, 1], None)?.matmul(&Tensor::ones(&[1, 4], None)?)
            }
            "torch.ones(1, 4) @ torch.ones(4, 1)" => {
                Tensor::ones(&[1, 4], None)?.matmul(&Tensor::ones(&[4, 1], None)?)
            }
            "torch.ones(4, 1) @ torch.ones(1, 1)" => {
                Tensor::ones(&[4, 1], None)?.matmul(&Tensor::ones(&[1, 1], None)?)
            }
            "torch.ones(4, 1) @ torch.ones(4, 1).t()" => {
                Tensor::ones(&[4, 1], None)?.matmul(&Tensor::ones(&[4, 1], None)?.t()?)
            }
            "torch.ones(0, 4) @ x" => Tensor::ones(&[0, 4], None)?.matmul(x),
            "torch.ones(2, 0) @ torch.ones(0, 3)" => {
                Tensor::ones(&[2, 0], None)?.matmul(&Tensor::ones(&[0, 3], None)?)
            }
            "x @ row" => x.matmul(row),
            "x.t() @ row" => x.t()?.matmul(row),
            "row.expand(3, 4) @ row" => row.expand(&[3, 4])?.matmul(row),
            "torch.ones(3, 0) @ torch.ones(0)" => {
                Tensor::ones(&[3, 0], None)?.matmul(&Tensor::ones(&[0], None)?)
            }
            "row @ x" => row.matmul(x),
            "row @ row" => row.matmul(row),
            "torch.ones(0) @ torch.ones(0)" => {
                Tensor::ones(&[0], None)?.matmul(&Tensor::ones(&[0], None)?)
            }
            "batch @ batch" => batch.matmul(batch),
            "batch @ x" => batch.matmul(x),
            "batch @ x.t()" => batch.matmul(&x.t()?),
            "batch.transpose(1, 2) @ x" => batch.transpose(1, 2)?.matmul(x),
            "batch @ row" => batch.matmul(row),
            "batch.transpose(1, 2) @ row" => batch.transpose(1, 2)?.matmul(row),
            "x @ batch" => x.matmul(batch),
            "row @ batch" => row.matmul(batch),
            "row @ batch.transpose(1, 2)" => row.matmul(&batch.transpose(1, 2)?),
            "x @ batch.transpose(1, 2)" => x.matmul(&batch.transpose(1, 2)?),
            "torch.ones(2, 1, 4, 4) @ batch" => Tensor::ones(&[2, 1, 4, 4], None)?.matmul(batch),
            "torch.ones(2, 3, 0) @ torch.ones(2, 0, 3)" => {
                Tensor::ones(&[2, 3, 0], None)?.matmul(&Tensor::ones(&[2, 0, 3], None)?)
            }
            "torch.ones(2, 0, 4) @ x" => Tensor::ones(&[2, 0, 4], None)?.matmul(x),
            "torch.mm(x, x)" => x.mm(x),
            "torch.bmm(batch, batch)" => batch.bmm(batch),
            "torch.mv(x, row)" => x.mv(row),
            "torch.dot(row, row)" => row.dot(row),
            other => panic!("torch.txt has a case that is not here: {other}"),
        };
        result.map(drop)
    }
}

/// Runs an action and returns its operators, one per line, indented by nesting depth.
fn record(action: impl FnOnce()) -> String {
    let session = Session::start(Options {
        inputs: true,
        ..Options::default()
    });
    action();
    let profile = session.stop().assemble();
    let mut lines = String::new();
    let mut ends = Vec::new();
    for event in profile.events() {
        while ends.last().is_some_and(|&end| event.start >= end) {
            ends.pop();
        }
        lines += &"  ".repeat(ends.len());
        lines += &line(&profile, event);
        lines.push('\n');
        ends.push(event.end());
    }
    lines
}

fn line(profile: &Profile, event: &Event) -> String {
    let mut words = vec![profile.name(event).to_owned()];
    words.extend(
        profile
            .inputs()
            .inputs(event.inputs)
            .map(|input| text(&input)),
    );
    words.join(" ")
}

fn text(input: &Input<'_>) -> String {
    let signed = |words: &[u64]| words.iter().map(|&word| word as i64).collect::<Vec<_>>();
    match input {
        Input::Tensor {
            dtype,
            dims,
            strides,
            ..
        } => {
            let name = match dtype {
                mindprof_model::DType::F32 => "float",
                mindprof_model::DType::F64 => "double",
                mindprof_model::DType::I32 => "int",
                mindprof_model::DType::I64 => "long int",
                mindprof_model::DType::Bool => "bool",
                other => panic!("no tensor here is of {other:?}"),
            };
            format!("{name}{:?}{:?}", signed(dims), signed(strides))
        }
        Input::Int(value) => value.to_string(),
        Input::Float(value) => format!("{value:?}"),
        Input::Bool(value) => value.to_string(),
        Input::IntList(words) => format!("{:?}", signed(words)),
        Input::Other | Input::Device => "-".to_owned(),
        Input::TensorList(_)
        | Input::FloatList(_)
        | Input::BoolList(_)
        | Input::NumberList(_)
        | Input::Complex { .. } => panic!("no operator here takes {input:?}"),
    }
}
