# Two risks of the same patients beside each other, by survival::concordance: Rscript concordance.R > concordance.json
library(survival)
set.seed(3)
n <- 40
time <- round(rexp(n) * 10, 0) + 1
event <- rbinom(n, 1, 0.6)
one <- round(rnorm(n), 1)
other <- round(one + rnorm(n), 1)
seen <- Surv(time, event)
risks <- function(x) coxph(seen ~ x, init = 1, control = coxph.control(iter.max = 0))
both <- concordance(risks(one), risks(other))
v <- vcov(both)
list_of <- function(x) paste0("[", paste(x, collapse = ", "), "]")
cat(sprintf('{\n "made_by": "%s, survival %s",\n "time": %s,\n "event": %s,\n "one": %s,\n "other": %s,\n "concordance": [%.15g, %.15g],\n "error": %.15g\n}\n',
            R.version.string, packageVersion("survival"), list_of(time), list_of(event), list_of(one), list_of(other),
            both$concordance[1], both$concordance[2], sqrt(v[1, 1] + v[2, 2] - 2 * v[1, 2])))
