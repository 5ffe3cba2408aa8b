# Survival times of hospitals of 400, 20 and 20 patients with one baseline hazard, constant in 8 equal cells of 200 days, by R.
#
#     Rscript unequal.R PATIENTS.csv
#
# PATIENTS.csv is shared/similarity/tests/reference/regression/patients.csv, of which the first hospital has each of the first 200 twice. Writes
# unequal.json; unequal-versions.txt names what made it.
library(survival)
library(jsonlite)
patients <- read.csv(commandArgs(trailingOnly = TRUE)[1])
patients <- patients[c(1:200, 1:200, 201:240), ]
patients$e <- ifelse(patients$days > 200, 0, patients$event)
patients$t <- pmin(patients$days, 200)
rows <- survSplit(Surv(t, e) ~ ., patients, cut = 200 * 1:7 / 8, start = "begin", episode = "number")
rows$at_risk <- rows$t - rows$begin
rows$cell <- factor(rows$number, 1:8)
fit <- glm(e ~ 0 + cell + age + marker + treated + offset(log(at_risk)), poisson, rows, control = glm.control(epsilon = 1e-16, maxit = 100))
own <- !grepl("^cell[0-9]+$", names(coef(fit)))
write_json(list(coefficients = unname(coef(fit)[own]), standard_errors = unname(sqrt(diag(vcov(fit)))[own])),
           "unequal.json", digits = 17, auto_unbox = TRUE, pretty = TRUE)
writeLines(c(R.version.string, paste("survival", packageVersion("survival")), paste("jsonlite", packageVersion("jsonlite"))),
           "unequal-versions.txt")
