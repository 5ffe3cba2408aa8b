# The vignette "Get Started" of the R package CaseBasedReasoning, by that package and by survival: what Kindred's notebook of one hospital
# must find.
#
#     Rscript vignette.R > vignette.json
#
# The patients are survival's `ovarian`; train and test are the vignette's, by its seed. coefficients are coxph's to the last digit (the
# package itself stops its fit at 1e-4), distances are the package's rows of test by train after that fit, and similar are its three nearest.
# zph is cox.zph by the rank of time, as in the vignette, and by time.

suppressMessages({
  library(CaseBasedReasoning)
  library(survival)
})

data <- ovarian
for (name in c("resid.ds", "rx", "ecog.ps")) data[[name]] <- factor(data[[name]])
set.seed(42)
train <- sample(1:nrow(data), floor(0.8 * nrow(data)), FALSE)
test <- (1:nrow(data))[-train]
formula <- Surv(futime, fustat) ~ age + resid.ds + rx + ecog.ps

strict <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 50)
fit <- coxph(formula, data[train, ], control = strict)
model <- CoxModel$new(formula, data[train, ])
model$model_params <- c(model$model_params, eps = 1e-14, tol = 1e-15, iter.max = 50)
model$fit()
similar <- model$get_similar_cases(query = data[test, ], k = 3)
case <- match(paste(similar$age, similar$futime), paste(data$age, data$futime))
zph <- function(transform) {
  table <- cox.zph(fit, transform)$table
  list(feature = rownames(table), chi_squared = unname(table[, "chisq"]), p = unname(table[, "p"]))
}
distances <- model$calc_distance_matrix(data[test, ])
versions <- vapply(c("CaseBasedReasoning", "rms", "survival"), function(one) as.character(packageVersion(one)), "")
cat(jsonlite::toJSON(list(
  versions = as.list(c(R = as.character(getRversion()), versions)),
  patients = ovarian[c("futime", "fustat", "age", "resid.ds", "rx", "ecog.ps")],
  train = train,
  test = test,
  coefficients = as.list(coef(fit)),
  standard_errors = as.list(setNames(sqrt(diag(vcov(fit))), names(coef(fit)))),
  log_likelihood = fit$loglik[2],
  zph = list(rank = zph("rank"), time = zph("identity")),
  similar = list(query = rep(test, each = 3), case = case, distance = similar$scDist),
  distances = unname(distances)
), digits = NA, auto_unbox = TRUE, dataframe = "columns"), "\n")
