# Splines, complete cases and backward selection by R: what a federated run must find.
#
#     Rscript splines.R PATIENTS.csv
#
# PATIENTS.csv is shared/similarity/tests/reference/regression/patients.csv, of whom the test blanks values as below. knots.csv has the
# knots that a run takes from the sites' counts (a line a feature; marker as ln(1 + marker)). Cox regressions are stratified by hospital:
# of 120, 80 and 40 patients. With one baseline for all hospitals it is a Poisson regression of the events in eight equal cells of time, with
# the time at risk as offset; its splines are by ns() once more. Writes splines.json; splines-versions.txt names what made it.
library(survival)
library(splines)
library(jsonlite)
arguments <- commandArgs(trailingOnly = TRUE)
strict <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 50)
patients <- read.csv(arguments[1])
row <- seq_len(nrow(patients)) - 1
patients$hospital <- rep(1:3, c(120, 80, 40))
patients$ratio[row %% 13 == 5] <- NA
patients$group[row %% 17 == 4] <- NA
patients$group <- factor(patients$group, c("mild", "severe", "odd"))
patients$treated <- factor(patients$treated, c("no", "yes"))
patients$marker <- log1p(patients$marker)
patients <- patients[complete.cases(patients), ]
knots <- lapply(strsplit(readLines("knots.csv"), ","), as.numeric)
# Natural cubic spline by truncated powers, divided by the squared span of the knots (Harrell, section 2.4.5).
spline_of <- function(x, t) {
  k <- length(t)
  cube <- function(u) pmax(u, 0)^3
  cbind(x, sapply(seq_len(k - 2), function(j) (cube(x - t[j]) - cube(x - t[k - 1]) * (t[k] - t[j]) / (t[k] - t[k - 1]) +
    cube(x - t[k]) * (t[k - 1] - t[j]) / (t[k] - t[k - 1])) / (t[k] - t[1])^2))
}
by_ns <- function(x, t) ns(x, knots = t[2:(length(t) - 1)], Boundary.knots = t[c(1, length(t))])
patients$age_ns <- by_ns(patients$age, knots[[1]])
patients$marker_ns <- by_ns(patients$marker, knots[[2]])
patients$age <- spline_of(patients$age, knots[[1]])
patients$marker <- spline_of(patients$marker, knots[[2]])
told <- function(fit) list(coefficients = unname(coef(fit)), standard_errors = unname(sqrt(diag(vcov(fit)))),
                           log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit))
wald <- function(fit, data) {
  left <- c()
  p_of <- c()
  repeat {
    columns <- grep("strata", attr(terms(fit), "term.labels"), invert = TRUE, value = TRUE)
    if (length(columns) < 2) break
    place <- attr(model.matrix(fit), "assign")
    if (is.list(place)) place <- rep(seq_along(place), lengths(place))
    value <- sapply(seq_along(columns), function(term) {
      own <- which(place == term)
      b <- coef(fit)[own]
      pchisq(sum(b * solve(vcov(fit)[own, own, drop = FALSE], b)), length(own), lower.tail = FALSE)
    })
    if (max(value) <= 0.05) break
    worst <- columns[which.max(value)]
    left <- c(left, worst)
    p_of <- c(p_of, max(value))
    fit <- update(fit, as.formula(paste(". ~ . -", worst)))
  }
  c(told(fit), list(removed = left, values = p_of))
}
aic <- function(fit, lower = ~ 1) {
  found <- step(fit, scope = list(lower = lower), direction = "backward", trace = 0)
  c(told(found), list(removed = sub("^- ", "", found$anova$Step[-1])))
}
same <- function(one, other) {
  stopifnot(abs(as.numeric(logLik(one)) - as.numeric(logLik(other))) < 1e-8)
  a <- predict(one, se.fit = TRUE, type = if (inherits(one, "coxph")) "lp" else "link")
  b <- predict(other, se.fit = TRUE, type = if (inherits(other, "coxph")) "lp" else "link")
  stopifnot(max(abs(a$fit - b$fit)) < 1e-7, max(abs(a$se.fit - b$se.fit)) < 1e-7)
}
right <- ~ age + marker + ratio + group + treated
chosen_of <- . ~ age + marker + ratio + group
right_ns <- ~ age_ns + marker_ns + ratio + group + treated
linear <- glm(update(right, score ~ .), gaussian, patients, epsilon = 1e-15)
logistic <- glm(update(right, ill ~ .), binomial, patients, epsilon = 1e-15, maxit = 100)
same(linear, glm(update(right_ns, score ~ .), gaussian, patients))
same(logistic, glm(update(right_ns, ill ~ .), binomial, patients, epsilon = 1e-15, maxit = 100))
patients$t <- pmin(patients$days, 900)
patients$e <- ifelse(patients$days > 900, 0, patients$event)
cox_of <- function(formula) {
  coxph(update(formula, Surv(t, e) ~ . + strata(hospital)), patients, control = strict, model = TRUE, x = TRUE)
}
cox <- cox_of(right)
same(cox, cox_of(right_ns))
horizon <- 400
cells <- 8
early <- transform(patients, t = pmin(days, horizon), e = ifelse(days > horizon, 0, event))
ends <- horizon * seq_len(cells) / cells
rows <- survSplit(Surv(t, e) ~ ., early, cut = ends[-cells], start = "begin", episode = "number")
rows$at_risk <- rows$t - rows$begin
rows$cell <- factor(rows$number, seq_len(cells))
common_of <- function(formula) {
  glm(update(formula, e ~ 0 + cell + . + offset(log(at_risk))), poisson, rows, control = glm.control(epsilon = 1e-16, maxit = 100))
}
common <- common_of(right)
same(common, common_of(right_ns))
of_features <- !grepl("^cell", names(coef(common)))
mean <- fitted(common)
ll <- sum((log(mean) - log(rows$at_risk))[rows$e == 1]) - sum(mean)
write_json(list(
  patients = nrow(patients),
  linear = told(linear), logistic = told(logistic), cox = told(cox),
  common = list(coefficients = unname(coef(common)[of_features]), standard_errors = unname(sqrt(diag(vcov(common)))[of_features]),
                log_likelihood = ll, aic = 2 * length(coef(common)) - 2 * ll,
                fewest_followed = min(tapply(rows$at_risk, rows$cell, sum)) / (horizon / cells)),
  aic = list(linear = aic(update(linear, chosen_of)), logistic = aic(update(logistic, chosen_of)),
             cox = aic(coxph(Surv(t, e) ~ age + marker + ratio + group + strata(hospital), patients, control = strict), ~ strata(hospital))),
  wald = list(linear = wald(linear), logistic = wald(logistic), cox = wald(cox))),
  "splines.json", digits = 17, auto_unbox = TRUE, pretty = TRUE)
writeLines(c(R.version.string, paste(c("survival", "splines", "jsonlite"), sapply(c("survival", "splines", "jsonlite"),
  function(name) as.character(packageVersion(name))))), "splines-versions.txt")
