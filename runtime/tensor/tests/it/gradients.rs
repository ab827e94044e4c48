//! Checks every gradient formula against central differences, in double precision.

use mindtorch_tensor::{
    Approximation, BatchNorm, Convolution, CrossEntropy, DType, Elementwise, End, KeepDims,
    Logical, Pool, Put, Reduction, Result, RetainGraph, Scalar, Spread, Tensor, Triangle, backward,
    gradients,
};

const STEP: f64 = 1e-6;

/// Compares the gradient of `f` with respect to each operand with finite differences.
fn check(name: &str, shapes: &[&[i64]], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let operands: Vec<Tensor> = shapes.iter().enumerate().map(start).collect();
    // Every element of the result has a different weight, so that a mix-up of elements shows.
    let weigh = |operands: &[Tensor]| -> Result<Tensor> {
        let result = f(operands)?;
        let count = result.count() as i64;
        let weights = Tensor::arange(
            Scalar::Int(1),
            Scalar::Int(count + 1),
            Scalar::Int(1),
            Some(DType::F64),
        )?;
        let sizes: Vec<i64> = result.dims().iter().map(|&dim| dim as i64).collect();
        result
            .mul(&weights.reshape(&sizes)?)?
            .sum(None, KeepDims::No, None)
    };
    for operand in &operands {
        operand.set_requires_grad(true).expect("it is of floats");
    }
    let result = weigh(&operands).unwrap_or_else(|error| panic!("{name}: {error}"));
    backward(&[result], &[None], RetainGraph::No).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (index, operand) in operands.iter().enumerate() {
        let found = operand
            .grad()
            .expect("the result depends on it")
            .to_f64_vec()
            .expect("it is small");
        let own = operand.to_f64_vec().expect("it is small");
        for place in 0..own.len() {
            let moved = |by: f64| {
                let mut changed: Vec<Tensor> = operands.iter().map(Tensor::detached).collect();
                let mut values = own.clone();
                values[place] += by;
                changed[index] =
                    Tensor::from_slice(&values, shapes[index]).expect("the sizes are its own");
                weigh(&changed)
                    .expect("it worked before")
                    .to_f64_vec()
                    .expect("it is small")[0]
            };
            let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let error = (found[place] - slope).abs() / slope.abs().max(1.0);
            assert!(
                error < 1e-5,
                "{name} by operand {index} at {place}: {} is not {slope}",
                found[place]
            );
        }
    }
}

/// Returns distinct numbers between a quarter and three.
fn start((index, shape): (usize, &&[i64])) -> Tensor {
    let count: i64 = shape.iter().product();
    let values: Vec<f64> = (0..count)
        .map(|place| {
            0.25 + ((place * 7 + index as i64 * 3) % 11) as f64 * 0.25 + place as f64 * 0.001
        })
        .collect();
    Tensor::from_slice(&values, shape).expect("there are as many values as the sizes say")
}

fn check_unary(name: &str, f: impl Fn(&Tensor) -> Result<Tensor>) {
    check(name, &[&[2, 3]], |operands| f(&operands[0]));
}

#[test]
fn arithmetic_has_its_derivatives() {
    check("add", &[&[2, 3], &[3]], |x| {
        x[0].add_scaled(&x[1], Scalar::Float(1.5))
    });
    check("sub", &[&[2, 1], &[3]], |x| x[0].sub(&x[1]));
    check("mul", &[&[2, 3], &[2, 1]], |x| x[0].mul(&x[1]));
    check("div", &[&[2, 3], &[3]], |x| x[0].div(&x[1]));
    check("rsub", &[&[3]], |x| x[0].rsub(Scalar::Int(2)));
    check("pow", &[&[3]], |x| x[0].pow(Scalar::Float(2.5)));
    check("pow of tensors", &[&[3], &[3]], |x| x[0].pow_tensor(&x[1]));
    check("maximum", &[&[5], &[5]], |x| x[0].maximum(&x[1]));
    check("minimum", &[&[5], &[5]], |x| x[0].minimum(&x[1]));
    check_unary("clamp", |x| {
        x.clamp(Some(Scalar::Float(0.6)), Some(Scalar::Float(2.1)))
    });
    check_unary("reciprocal", Tensor::reciprocal);
    check_unary("relu", |x| x.sub(1.6)?.relu());
}

#[test]
fn functions_of_elements_have_their_derivatives() {
    use Elementwise::{Abs, Cos, Erf, Exp, Log, Rsqrt, Sigmoid, Sin, Sqrt, Tanh};
    for function in [Abs, Cos, Erf, Exp, Log, Rsqrt, Sigmoid, Sin, Sqrt, Tanh] {
        check_unary(&format!("{function:?}"), |x| x.elementwise(function));
        check_unary(&format!("{function:?} in place"), |x| {
            let copy = x.mul(1.0)?;
            copy.elementwise_(function)?;
            Ok(copy)
        });
    }
    for approximation in [Approximation::None, Approximation::Tanh] {
        check_unary("gelu", |x| x.sub(1.5)?.gelu(approximation));
    }
}

#[test]
fn views_have_their_derivatives() {
    check_unary("t", Tensor::t);
    check_unary("permute", |x| x.unsqueeze(1)?.permute(&[2, 0, 1]));
    check_unary("view", |x| x.view(&[3, 2]));
    check_unary("reshape", |x| x.t()?.reshape(&[6]));
    check_unary("expand", |x| x.unsqueeze(0)?.expand(&[4, -1, 3]));
    check_unary("select", |x| x.select(1, -1));
    check_unary("slice", |x| x.slice(1, Some(0), None, 2));
    check_unary("narrow", |x| x.narrow(0, 1, 1));
    check_unary("as_strided", |x| x.as_strided_at(&[2, 2], &[1, 2], Some(1)));
    check_unary("chunk", |x| x.chunk(2, 1)?[1].mul(2.0));
    check_unary("unbind", |x| x.unbind(0)?[1].mul(3.0));
    check_unary("squeeze", |x| x.unsqueeze(2)?.squeeze_all());
    check("cat", &[&[2, 2], &[2, 1]], |x| Tensor::cat(x, 1));
    check("stack", &[&[2, 2], &[2, 2]], |x| Tensor::stack(x, 1));
    check_unary("triangle", |x| x.triangle(Triangle::Lower, 0));
}

#[test]
fn choices_have_their_derivatives() {
    let places = Tensor::from_slice(&[1_i64, 0, 1], &[3]).unwrap();
    check_unary("index", |x| x.index(&[Some(places.clone())]));
    check_unary("index of a later dimension", |x| {
        x.index(&[None, Some(places.clone())])
    });
    check_unary("index_select", |x| x.index_select(0, &places));
    check_unary("gather", |x| {
        x.gather(1, &Tensor::from_slice(&[2_i64, 2, 0, 1], &[2, 2])?)
    });
    check("index_put", &[&[2, 3], &[2]], |x| {
        let copy = x[0].mul(2.0)?;
        let picks = [
            Some(Tensor::from_slice(&[0_i64, 1], &[2])?),
            Some(Tensor::from_slice(&[2_i64, 0], &[2])?),
        ];
        copy.index_put_(&picks, &x[1], Put::Replace)?;
        Ok(copy)
    });
    check("a view that is written to", &[&[2, 3], &[3]], |x| {
        let copy = x[0].mul(2.0)?;
        copy.select(0, 1)?.mul_(&x[1])?;
        Ok(copy)
    });
    check_unary("max along", |x| {
        Ok(x.extreme_along(End::Highest, 1, KeepDims::No)?[0].clone())
    });
    check_unary("max", |x| x.extreme(End::Highest));
    check_unary("masked_fill", |x| {
        let mask = Tensor::from_slice(&[true, false, true].map(Logical::from), &[3])?;
        x.masked_fill(&mask, Scalar::Int(7))
    });
    check("embedding", &[&[3, 2]], |x| x[0].embedding(&places, None));
}

#[test]
fn sums_and_products_have_their_derivatives() {
    check_unary("sum", |x| x.sum(None, KeepDims::No, None));
    check_unary("sum along", |x| x.sum(Some(&[1]), KeepDims::No, None));
    check_unary("mean", |x| x.mean(None, KeepDims::No, None));
    check_unary("mean along", |x| x.mean(Some(&[0]), KeepDims::Yes, None));
    check_unary("var", |x| {
        x.spread(Spread::Variance, Some(&[1]), 1.0, KeepDims::No)
    });
    check_unary("std", |x| {
        x.spread(Spread::Deviation, None, 1.0, KeepDims::No)
    });
    for order in [0.5, 1.0, 1.5, 2.0, 3.0, f64::INFINITY] {
        check_unary("norm", |x| x.vector_norm(order, Some(&[1]), KeepDims::No));
    }
    check("mm", &[&[2, 3], &[3, 2]], |x| x[0].mm(&x[1]));
    check("mm of a transposed one", &[&[2, 3], &[2, 3]], |x| {
        x[0].mm(&x[1].t()?)
    });
    check("addmm", &[&[2], &[2, 3], &[3, 2]], |x| {
        x[0].addmm(&x[1], &x[2])
    });
    check("bmm", &[&[2, 2, 3], &[2, 3, 2]], |x| x[0].bmm(&x[1]));
    check("mv", &[&[2, 3], &[3]], |x| x[0].mv(&x[1]));
    check("dot", &[&[3], &[3]], |x| x[0].dot(&x[1]));
    check("matmul", &[&[2, 2, 3], &[3, 2]], |x| x[0].matmul(&x[1]));
    check("linear", &[&[2, 2, 3], &[4, 3], &[4]], |x| {
        x[0].linear(&x[1], Some(&x[2]))
    });
}

#[test]
fn layers_have_their_derivatives() {
    check("layer_norm", &[&[2, 4], &[4], &[4]], |x| {
        x[0].layer_norm(&[4], Some(&x[1]), Some(&x[2]), 1e-5)
    });
    for training in [true, false] {
        let running = |value| Tensor::full(&[2], Scalar::Float(value), Some(DType::F64)).unwrap();
        check("batch_norm", &[&[3, 2, 2], &[2], &[2]], |x| {
            let (mean, variance) = (running(0.5), running(2.0));
            x[0].batch_norm(BatchNorm {
                weight: Some(&x[1]),
                bias: Some(&x[2]),
                running_mean: Some(&mean),
                running_var: Some(&variance),
                training,
                momentum: 0.1,
                epsilon: 1e-5,
            })
        });
    }
    check("conv2d", &[&[2, 2, 4, 5], &[2, 1, 2, 3], &[2]], |x| {
        let options = Convolution {
            stride: [2, 1],
            padding: [1, 2],
            dilation: [1, 2],
            groups: 2,
        };
        x[0].conv2d(&x[1], Some(&x[2]), options)
    });
    check("max_pool2d", &[&[1, 2, 5, 4]], |x| {
        let pool = Pool {
            kernel: [3, 2],
            stride: [2, 2],
            padding: [1, 0],
            dilation: [1, 1],
            ceil: false,
        };
        Ok(x[0].max_pool2d(pool)?[0].clone())
    });
    check("adaptive_avg_pool2d", &[&[1, 2, 5, 4]], |x| {
        x[0].adaptive_avg_pool2d([2, 3])
    });
    check("softmax", &[&[2, 3, 2]], |x| x[0].softmax(1, None));
    check("log_softmax", &[&[2, 3]], |x| x[0].log_softmax(-1, None));
    for causal in [true, false] {
        let shape: &[i64] = &[1, 2, 3, 4];
        check("attention", &[shape, shape, shape], |x| {
            x[0].attention(&x[1], &x[2], None, 0.0, causal, None)
        });
        check("attention by parts", &[&[3, 4], &[3, 4], &[3, 4]], |x| {
            x[0].attention(&x[1], &x[2], None, 0.0, causal, None)
        });
    }
}

#[test]
fn losses_have_their_derivatives() {
    let target = Tensor::from_slice(&[1_i64, 0, -100], &[3]).unwrap();
    let weight = Tensor::from_slice(&[0.5, 2.0], &[2]).unwrap();
    for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
        check("mse_loss", &[&[2, 3], &[2, 3]], |x| {
            x[0].mse_loss(&x[1], reduction)
        });
        for (weight, label_smoothing) in [(None, 0.0), (Some(weight.clone()), 0.0), (None, 0.2)] {
            let options = CrossEntropy {
                weight,
                reduction,
                label_smoothing,
                ..CrossEntropy::default()
            };
            check("cross_entropy", &[&[3, 2]], |x| {
                x[0].cross_entropy(&target, &options)
            });
        }
    }
}

#[test]
fn gradients_of_chosen_tensors_leave_leaves_alone() {
    let x = Tensor::ones(&[2], Some(DType::F64)).unwrap();
    x.set_requires_grad(true).unwrap();
    let middle = x.mul(3.0).unwrap();
    let result = middle
        .mul(&middle)
        .unwrap()
        .sum(None, KeepDims::No, None)
        .unwrap();
    let found = gradients(
        &[result],
        &[middle, x.clone()],
        &[None],
        RetainGraph::No,
        mindtorch_tensor::Unused::Refuse,
    );
    let found: Vec<_> = found
        .unwrap()
        .into_iter()
        .flatten()
        .map(|part| part.to_f64_vec().unwrap())
        .collect();
    assert_eq!(found, [[6.0, 6.0], [18.0, 18.0]]);
    assert!(x.grad().is_none());
}
