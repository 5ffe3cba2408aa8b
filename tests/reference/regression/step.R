# A long backward selection by Akaike's criterion: R's `step` on twelve features, of which four matter.
#
#     Rscript step.R
#
# Numbers follow from whole ones, so that the test writes the same table: column k of patient i is (i i p_k + i q_k) mod 9973, over 9973. Cox
# regressions are stratified by hospital, of 1,200, 800 and 400 patients. Writes step.json; step-versions.txt names what made it.
library(survival)
library(jsonlite)
i <- 0:2399
uniform <- function(k) ((i * i * (17 + 2 * k) + i * (31 + 6 * k)) %% 9973) / 9973
patients <- as.data.frame(sapply(1:12, function(k) round(uniform(k), 3)))
names(patients) <- paste0("x", 1:12)
patients$hospital <- rep(1:3, c(1200, 800, 400))
eta <- with(patients, 1.1 * x1 - 0.9 * x4 + 0.8 * x7 - 0.7 * x10)
patients$score <- round(eta + uniform(20) + uniform(21) - uniform(22), 3)
patients$ill <- as.integer(uniform(23) < plogis(eta))
patients$days <- 1 + round(-log1p(-uniform(24)) / exp(eta) * 300, 0)
patients$event <- as.integer(uniform(25) < 0.7)
told <- function(fit, lower) {
  found <- step(fit, scope = list(lower = lower), direction = "backward", trace = 0)
  list(removed = sub("^- ", "", found$anova$Step[-1]), coefficients = unname(coef(found)),
       standard_errors = unname(sqrt(diag(vcov(found)))), log_likelihood = as.numeric(logLik(found)), aic = AIC(found))
}
right <- reformulate(paste0("x", 1:12))
strict <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 50)
patients$e <- ifelse(patients$days > 900, 0, patients$event)
patients$t <- pmin(patients$days, 900)
write_json(list(
  linear = told(glm(update(right, score ~ .), gaussian, patients, epsilon = 1e-15), ~ 1),
  logistic = told(glm(update(right, ill ~ .), binomial, patients, epsilon = 1e-15, maxit = 100), ~ 1),
  cox = told(coxph(update(right, Surv(t, e) ~ . + strata(hospital)), patients, control = strict), ~ strata(hospital))),
  "step.json", digits = 17, auto_unbox = TRUE, pretty = TRUE)
writeLines(c(R.version.string, paste(c("survival", "jsonlite"), sapply(c("survival", "jsonlite"),
  function(name) as.character(packageVersion(name))))), "step-versions.txt")
