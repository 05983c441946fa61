#pragma once

namespace longca {

/// Special functions that the comparison of times needs and the standard library lacks.

/// P(|T| >= |t|) of Student's t with `df` > 0 degrees of freedom; 0 for an infinite t.
double student_two_sided(double t, double df);
/// The t with student_two_sided(t, df) = p, for 0 < p < 1.
double student_quantile(double p, double df);

/// The first and second derivative of the logarithm of Γ, for x > 0.
double digamma(double x);
double trigamma(double x);
/// The x > 0 with trigamma(x) = y, for y > 0.
double inverse_trigamma(double y);

}  // namespace longca
