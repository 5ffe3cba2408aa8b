# Linear, logistic and Cox regression by R, its survival package and its own functions: what ours must equal.
#
#     Rscript regression.R GBSG2.csv
#
# Writes patients.csv (240 synthetic patients: tied times, a column in large units, three groups) and regression.json,
# the numbers of these patients and of GBSG2 (686 patients, of which only coefficients and tests are kept).
# versions.txt names what made them.
library(survival)
library(jsonlite)
arguments <- commandArgs(trailingOnly = TRUE)
strict <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 50)
set.seed(20)
n <- 240
age <- round(rnorm(n, 60, 9))
marker <- round(exp(rnorm(n, 5, 1)), 1)
ratio <- round(runif(n, 0.2, 0.9), 4)
group <- sample(c("mild", "severe", "odd"), n, TRUE, c(5, 3, 2))
treated <- sample(c("no", "yes"), n, TRUE)
effect <- 0.04 * (age - 60) + 0.002 * marker + c(mild = 0, severe = 0.8, odd = -0.4)[group] - 0.5 * (treated == "yes")
score <- round(10 + 3 * effect + rnorm(n), 3)
ill <- as.integer(runif(n) < plogis(effect - 0.3))
days <- ceiling(rexp(n, exp(effect) / 300) / 20) * 20
censor <- ceiling(runif(n, 60, 900) / 20) * 20
patients <- data.frame(age, marker, ratio, group, treated, score, ill,
                       days = pmin(days, censor), event = as.integer(days <= censor))
patients <- patients[order(runif(n)), ]
write.csv(patients, "patients.csv", row.names = FALSE, quote = FALSE)
patients$group <- factor(patients$group, c("mild", "severe", "odd"))
patients$treated <- factor(patients$treated, c("no", "yes"))

errors <- function(fit) sqrt(diag(as.matrix(vcov(fit))))
told <- function(fit) list(names = names(coef(fit)), coefficients = unname(coef(fit)),
                           standard_errors = unname(errors(fit)), log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit))
# Natural cubic spline by truncated powers, divided by the squared span of the knots (Harrell, section 2.4.5).
knots_of <- function(x) unname(quantile(x, c(0.05, 0.35, 0.65, 0.95)))
curve_of <- function(x, t) {
  k <- length(t)
  cube <- function(u) pmax(u, 0)^3
  sapply(seq_len(k - 2), function(j) (cube(x - t[j]) - cube(x - t[k - 1]) * (t[k] - t[j]) / (t[k] - t[k - 1]) +
    cube(x - t[k]) * (t[k - 1] - t[j]) / (t[k] - t[k - 1])) / (t[k] - t[1])^2)
}
tests <- function(fit, terms = TRUE) {
  found <- lapply(c("rank", "identity", "km"), function(how) {
    table <- cox.zph(fit, transform = how, terms = terms)$table
    list(transform = how, names = rownames(table), chi_squared = unname(table[, 1]), degrees = unname(table[, 2]),
         p = unname(table[, 3]))
  })
  found
}
cox <- function(formula, data, ties) {
  fit <- coxph(formula, data, ties = ties, control = strict, model = TRUE, x = TRUE)
  hazard <- basehaz(fit, centered = FALSE)
  event_times <- sort(unique(fit$y[fit$y[, 2] == 1, 1]))
  list(fit = c(told(fit), list(null_log_likelihood = fit$loglik[1], concordance = unname(concordance(fit)$concordance),
       score_test = fit$score, wald_test = unname(fit$wald.test))),
       hazard = list(time = event_times, cumulative = hazard$hazard[match(event_times, hazard$time)]),
       proportional = tests(fit))
}
linear <- lm(score ~ age + marker + ratio + group + treated, patients)
logistic <- glm(ill ~ age + marker + ratio + group + treated, binomial, patients, epsilon = 1e-15, maxit = 100)
right <- Surv(days, event) ~ age + marker + ratio + group + treated
knots <- knots_of(patients$age)
bent <- curve_of(patients$age, knots)
basis <- as.matrix(splines::ns(patients$age, knots = knots[2:3], Boundary.knots = knots[c(1, 4)]))
splined <- coxph(Surv(days, event) ~ age + bent + treated, patients, control = strict)
by_ns <- coxph(Surv(days, event) ~ basis + treated, patients, control = strict)
stopifnot(abs(logLik(splined) - logLik(by_ns)) < 1e-8)
grid <- c(100, 200, 300, 400, 500, 600, 700, 800, 900)
coarse <- patients
coarse$days <- sapply(patients$days, function(t) min(grid[grid >= t]))
steps <- function(fit) names(coef(step(fit, direction = "backward", trace = 0)))
out <- list(
  linear = c(told(linear), list(sigma = sigma(linear), low = unname(confint(linear)[, 1]), high = unname(confint(linear)[, 2]))),
  logistic = c(told(logistic), list(low = unname(confint.default(logistic)[, 1]), high = unname(confint.default(logistic)[, 2]))),
  efron = cox(right, patients, "efron"), breslow = cox(right, patients, "breslow"),
  gridded = cox(Surv(days, event) ~ age + marker + ratio + group + treated, coarse, "efron"),
  spline = c(told(splined), list(knots = knots, first = unname(bent[1, ]))),
  selected = list(linear = steps(linear), logistic = steps(logistic),
                  cox = steps(coxph(right, patients, control = strict))))
if (length(arguments) > 0) {
  gbsg2 <- read.csv(arguments[1])
  gbsg2$tgrade <- as.integer(factor(gbsg2$tgrade, c("I", "II", "III")))
  gbsg2$horTh <- factor(gbsg2$horTh, c("no", "yes"))
  gbsg2$menostat <- factor(gbsg2$menostat, c("Pre", "Post"))
  whole <- Surv(time, cens) ~ horTh + age + menostat + tsize + tgrade + pnodes + progrec + estrec
  kept <- function(found) { found$hazard <- NULL; found }
  out$gbsg2 <- list(efron = kept(cox(whole, gbsg2, "efron")), breslow = kept(cox(whole, gbsg2, "breslow")))
}
write(toJSON(out, digits = NA, auto_unbox = TRUE, pretty = TRUE), "regression.json")
writeLines(c(R.version.string, paste("survival", packageVersion("survival"))), "versions.txt")
