# Survival times with one baseline hazard for all hospitals, constant in equal cells of time, by R: what a federated run must find, and how far
# it is from the Cox regression of the same patients.
#
#     Rscript common.R PATIENTS.csv GBSG2.csv
#
# PATIENTS.csv is shared/similarity/tests/reference/regression/patients.csv. The other sets are those of R's survival package. Writes common.json;
# common-versions.txt names what made it.
library(survival)
library(jsonlite)
arguments <- commandArgs(trailingOnly = TRUE)
strict <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 50)
cells <- 8
# A row per patient and cell: the time at risk there, whether it ends with the event, the cell and its middle.
split_up <- function(data, horizon) {
  data$e <- ifelse(data$time > horizon, 0, data$event)
  data$t <- pmin(data$time, horizon)
  ends <- horizon * seq_len(cells) / cells
  rows <- survSplit(Surv(t, e) ~ ., data, cut = ends[-cells], start = "begin", episode = "number")
  rows$at_risk <- rows$t - rows$begin
  rows$cell <- factor(rows$number, seq_len(cells))
  rows$middle <- (rows$number - 0.5) / cells
  rows
}
poisson_fit <- function(formula, rows) {
  formula <- update(formula, e ~ 0 + cell + . + offset(log(at_risk)))
  glm(formula, poisson, rows, control = glm.control(epsilon = 1e-16, maxit = 100))
}
log_likelihood <- function(rows, mean) sum((log(mean) - log(rows$at_risk))[rows$e == 1]) - sum(mean)
features <- function(fit) !grepl("^cell[0-9]+$", names(coef(fit)))
told <- function(formula, data, horizon) {
  rows <- split_up(data, horizon)
  fit <- poisson_fit(formula, rows)
  own <- features(fit)
  null <- poisson_fit(~ 1, rows)
  # The same model as a regression of survival times: log hazards are its coefficients, with the other sign.
  other <- survreg(update(formula, Surv(at_risk, e) ~ 0 + cell + .), rows, dist = "exponential",
                   control = survreg.control(rel.tolerance = 1e-15, maxiter = 100))
  zph <- sapply(c(attr(terms(formula), "term.labels"), "."), function(term) {
    of <- if (term == ".") attr(terms(formula), "term.labels") else term
    changing <- update(formula(fit), paste("~ . +", paste0(of, ":middle", collapse = " + ")))
    anova(fit, glm(changing, poisson, rows), test = "Rao")$Rao[2]
  })
  ll <- log_likelihood(rows, fitted(fit))
  list(coefficients = unname(coef(fit)[own]), standard_errors = unname(sqrt(diag(vcov(fit)))[own]),
       survreg = -unname(coef(other)[own]), survreg_errors = unname(sqrt(diag(vcov(other)))[own]),
       hazards = unname(exp(coef(fit)[!own])), log_likelihood = ll,
       null_log_likelihood = log_likelihood(rows, fitted(null)), aic = 2 * length(coef(fit)) - 2 * ll, proportional = unname(zph),
       cell_events = as.vector(tapply(rows$e, rows$cell, sum)), followed = as.vector(tapply(rows$at_risk, rows$cell, sum)) / (horizon / cells))
}
# A penalty of half of 2 times each squared coefficient per standard deviation (divisor n) of its column, by Newton's method.
ridge <- function(formula, data, horizon, penalty) {
  rows <- split_up(data, horizon)
  x <- model.matrix(poisson_fit(formula, rows))
  of <- model.matrix(formula, data)[, -1]
  spread <- apply(of, 2, function(one) sqrt(mean((one - mean(one))^2)))
  pulled <- c(rep(0, cells), penalty * spread^2)
  at <- coef(poisson_fit(formula, rows))
  for (step in 1:50) {
    mean <- as.vector(exp(x %*% at)) * rows$at_risk
    slope <- as.vector(crossprod(x, rows$e - mean)) - pulled * at
    information <- crossprod(x, x * mean) + diag(pulled)
    at <- at + solve(information, slope)
    if (max(abs(slope)) < 1e-12) break
  }
  own <- !grepl("^cell[0-9]+$", names(at))
  list(coefficients = unname(at[own]), standard_errors = unname(sqrt(diag(solve(information)))[own]), log_likelihood = log_likelihood(rows, mean))
}
selected <- function(formula, data, horizon) {
  rows <- split_up(data, horizon)
  fit <- step(poisson_fit(formula, rows), scope = list(lower = ~ 0 + cell + offset(log(at_risk))), direction = "backward", trace = 0)
  list(kept = setdiff(attr(terms(fit), "term.labels"), "cell"), coefficients = unname(coef(fit)[features(fit)]))
}
# The largest difference from coxph on the same patients, censored at the same horizon, in its standard errors, and the fewest patients who are
# followed on average in a cell.
apart <- function(formula, data, horizon) {
  data <- data[complete.cases(data[, c("time", "event", all.vars(formula))]), ]
  rows <- split_up(data, horizon)
  fit <- poisson_fit(formula, rows)
  data$e <- ifelse(data$time > horizon, 0, data$event)
  data$t <- pmin(data$time, horizon)
  cox <- coxph(update(formula, Surv(t, e) ~ .), data, control = strict)
  own <- coef(fit)[features(fit)]
  list(patients = nrow(data), events = sum(rows$e), horizon = horizon, fewest_followed = min(tapply(rows$at_risk, rows$cell, sum)) / (horizon / cells),
       fewest_events = min(tapply(rows$e, rows$cell, sum)), columns = length(own),
       standard_errors_from_cox = max(abs(own - coef(cox)) / sqrt(diag(vcov(cox)))))
}
patients <- read.csv(arguments[1])
patients$time <- patients$days
patients$group <- factor(patients$group, c("mild", "severe", "odd"))
of_patients <- ~ age + marker + ratio + group + treated
gbsg <- read.csv(arguments[2])
gbsg$event <- gbsg$cens
gbsg$tgrade <- as.integer(factor(gbsg$tgrade, c("I", "II", "III"))) - 1
gbsg$horTh <- factor(gbsg$horTh, c("no", "yes"))
gbsg$menostat <- factor(gbsg$menostat, c("Pre", "Post"))
of_gbsg <- ~ horTh + age + menostat + tsize + tgrade + pnodes + progrec + estrec
named <- function(data, time, event) {
  data$time <- time
  data$event <- event
  data
}
deaths <- subset(colon, etype == 2)
write_json(list(
  patients = c(told(of_patients, patients, 400), list(ridge = ridge(of_patients, patients, 400, 2), selected = selected(of_patients, patients, 400))),
  gbsg2 = told(of_gbsg, gbsg, 2000),
  distances = list(
    gbsg2 = apart(of_gbsg, gbsg, 2000),
    colon = apart(~ rx + sex + age + obstruct + perfor + adhere + nodes + differ + extent + surg, named(deaths, deaths$time, deaths$status), 2600),
    rotterdam = apart(~ year + age + meno + size + grade + nodes + pgr + er + hormon + chemo, named(rotterdam, rotterdam$dtime, rotterdam$death), 5000),
    lung = apart(~ age + sex + ph.ecog + ph.karno + pat.karno + wt.loss, named(lung, lung$time, lung$status - 1), 500),
    veteran = apart(~ trt + celltype + karno + diagtime + age + prior, named(veteran, veteran$time, veteran$status), 200))),
  "common.json", digits = 17, auto_unbox = TRUE, pretty = TRUE)
writeLines(c(R.version.string, paste("survival", packageVersion("survival")), paste("jsonlite", packageVersion("jsonlite"))),
           "common-versions.txt")
