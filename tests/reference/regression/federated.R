# Cox regressions stratified by hospital, by R's survival package: what a federated run must find.
#
#     Rscript federated.R PATIENTS.csv GBSG2.csv
#
# PATIENTS.csv is shared/similarity/tests/reference/regression/patients.csv, in hospitals of 120, 80 and 40 patients. The patients of
# GBSG2 go to three hospitals in turn. Writes federated.json; versions.txt names what made it.
library(survival)
library(jsonlite)
arguments <- commandArgs(trailingOnly = TRUE)
strict <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 50)
until <- function(data, time, event, horizon) {
  data$t <- pmin(time, horizon)
  data$e <- ifelse(time > horizon, 0, event)
  data
}
told <- function(formula, data, ties) {
  fit <- coxph(formula, data, ties = ties, control = strict, model = TRUE, x = TRUE)
  one <- coxph(update(formula, . ~ . - strata(hospital)), data, ties = ties, control = strict)
  zph <- cox.zph(fit, transform = "identity", terms = TRUE)$table
  list(coefficients = unname(coef(fit)), standard_errors = unname(sqrt(diag(vcov(fit)))),
       log_likelihood = fit$loglik[2], null_log_likelihood = fit$loglik[1], aic = AIC(fit), proportional = unname(zph[, 1]),
       away_from_one_stratum = max(abs(coef(fit) - coef(one)) / sqrt(diag(vcov(one)))))
}
both <- function(formula, data) list(efron = told(formula, data, "efron"), breslow = told(formula, data, "breslow"))
patients <- read.csv(arguments[1])
patients$hospital <- rep(1:3, c(120, 80, 40))
patients$group <- factor(patients$group, c("mild", "severe", "odd"))
patients <- until(patients, patients$days, patients$event, 900)
# A penalty of half of 2 times each squared coefficient per standard deviation (divisor n) of its column: by Newton's method on the
# log-likelihood that coxph gives where it makes no step.
ridge <- function(formula, data, penalty) {
  x <- coxph(formula, data, x = TRUE)$x
  spread <- apply(x, 2, function(one) sqrt(mean((one - mean(one))^2)))
  pulled <- penalty * spread^2
  at <- rep(0, ncol(x))
  for (step in 1:50) {
    fit <- coxph(formula, data, init = at, control = coxph.control(iter.max = 0), model = TRUE, x = TRUE)
    score <- colSums(residuals(fit, type = "score")) - pulled * at
    information <- solve(vcov(fit)) + diag(pulled)
    at <- at + solve(information, score)
    if (max(abs(score)) < 1e-11) break
  }
  fit <- coxph(formula, data, init = at, control = coxph.control(iter.max = 0))
  list(coefficients = unname(at), standard_errors = unname(sqrt(diag(solve(solve(vcov(fit)) + diag(pulled))))),
       log_likelihood = fit$loglik[2])
}
gbsg <- read.csv(arguments[2])
gbsg$hospital <- (seq_len(nrow(gbsg)) - 1) %% 3
gbsg$tgrade <- as.integer(factor(gbsg$tgrade, c("I", "II", "III"))) - 1
gbsg$horTh <- factor(gbsg$horTh, c("no", "yes"))
gbsg$menostat <- factor(gbsg$menostat, c("Pre", "Post"))
gbsg <- until(gbsg, gbsg$time, gbsg$cens, 2659)
of_patients <- Surv(t, e) ~ age + marker + ratio + group + treated + strata(hospital)
write_json(list(
  patients = c(both(of_patients, patients), list(ridge = suppressWarnings(ridge(of_patients, patients, 2)))),
  gbsg2 = both(Surv(t, e) ~ horTh + age + menostat + tsize + tgrade + pnodes + progrec + estrec + strata(hospital), gbsg)),
  "federated.json", digits = 17, auto_unbox = TRUE, pretty = TRUE)
writeLines(c(R.version.string, paste("survival", packageVersion("survival")), paste("jsonlite", packageVersion("jsonlite"))),
           "versions.txt")
