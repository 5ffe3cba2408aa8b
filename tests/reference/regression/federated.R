# Cox regression on the cells of follow-up that a federated run has made, by R's survival package: what the run must find.
#
#     Rscript federated.R PATIENTS.csv GBSG2.csv
#
# PATIENTS.csv is shared/similarity/tests/reference/regression/patients.csv. The first line of cells.csv has the steps of the grid (of 4096
# up to the horizon) before which each cell ends, of the run on those patients, the second of the run on GBSG2; both follow from the
# sites' counts of events. Writes federated.json; versions.txt names what made it.
library(survival)
library(jsonlite)
arguments <- commandArgs(trailingOnly = TRUE)
strict <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 50)
cells <- strsplit(readLines("cells.csv"), ",")
on_cells <- function(time, event, horizon, ends) {
  ends <- as.integer(ends)
  step <- pmin(floor(time / horizon * 4096), 4095)
  cell <- findInterval(step, ends) + 1
  data.frame(time = horizon * ends[cell] / 4096, event = ifelse(time > horizon, 0, event))
}
told <- function(formula, data, exact) {
  fit <- coxph(formula, data, control = strict, model = TRUE, x = TRUE)
  by_days <- coxph(exact, data, control = strict)
  zph <- cox.zph(fit, transform = "km", terms = TRUE)$table
  hazard <- basehaz(fit, centered = FALSE)
  list(coefficients = unname(coef(fit)), standard_errors = unname(sqrt(diag(vcov(fit)))),
       log_likelihood = fit$loglik[2], null_log_likelihood = fit$loglik[1], proportional = unname(zph[, 1]),
       times = hazard$time, hazard = hazard$hazard,
       away_from_days = max(abs(coef(fit) - coef(by_days)) / sqrt(diag(vcov(by_days)))))
}
patients <- read.csv(arguments[1])
patients$group <- factor(patients$group, c("mild", "severe", "odd"))
grid <- on_cells(patients$days, patients$event, 900, cells[[1]])
patients$t <- grid$time
patients$e <- grid$event
gbsg <- read.csv(arguments[2])
gbsg$tgrade <- as.integer(factor(gbsg$tgrade, c("I", "II", "III"))) - 1
gbsg$horTh <- factor(gbsg$horTh, c("no", "yes"))
gbsg$menostat <- factor(gbsg$menostat, c("Pre", "Post"))
grid <- on_cells(gbsg$time, gbsg$cens, 2659, cells[[2]])
gbsg$t <- grid$time
gbsg$e <- grid$event
write_json(list(
  patients = told(Surv(t, e) ~ age + marker + ratio + group + treated, patients,
                  Surv(days, event) ~ age + marker + ratio + group + treated),
  gbsg2 = told(Surv(t, e) ~ horTh + age + menostat + tsize + tgrade + pnodes + progrec + estrec, gbsg,
               Surv(time, cens) ~ horTh + age + menostat + tsize + tgrade + pnodes + progrec + estrec)),
  "federated.json", digits = 17, auto_unbox = TRUE, pretty = TRUE)
writeLines(c(R.version.string, paste("survival", packageVersion("survival")), paste("jsonlite", packageVersion("jsonlite"))),
           "versions.txt")
