"""Writes the golden frames: the same messages as the tests of src/message and src/method, encoded by Google's protobuf.

Made with Python 3.11, grpcio-tools and protobuf as `versions.txt` says:
    python make.py        (from this folder)
One line of hexadecimal digits a frame.
"""
import importlib, pathlib, subprocess, sys, tempfile
from importlib.metadata import version

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[3] / "proto"
out = tempfile.mkdtemp()
subprocess.check_call([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}", f"--python_out={out}",
                       *map(str, sorted(ROOT.glob("federation/v1/*.proto")))])
sys.path.insert(0, out)
m, s, u, t, r, n, c, v, k, f, o = (importlib.import_module(f"federation.v1.{name}_pb2")
                    for name in ("parts", "site", "unpsl", "forest", "regression", "neighbours", "cluster", "compare", "card", "federation", "operations"))

run = "heart-disease-1"
block = lambda data: f.Part(blocks=m.BlocksChunk(blocks=[m.Block(bytes=data)]))
digest = f.AnswerFrame(message=f.Answer(digest=f.Digest(sha256=b"\x06" * 32))).SerializeToString()
digest = bytes([len(digest)]) + digest
shape = lambda rows, columns: m.MatrixShape(rows=rows, columns=columns)
chunk = lambda matrix, values: f.Part(matrix=m.MatrixChunk(matrix=matrix, values=values))
numeric = m.ColumnMoments(numeric=m.NumericMoments(count=303, sum=-1.5, sum_squares=2.25, missing=7))
categorical = m.ColumnMoments(categorical=m.CategoricalMoments(counts=[12, 0, 300], missing=1))
columns = f.Part(columns=m.ColumnsChunk(columns=[numeric, categorical]))
card_group = k.CardGroup(patients=303, features=[
    k.CardEntry(missing=20, moments=k.CardMoments(mean=54.5, deviation=9.5)), k.CardEntry(levels=[10, 0, 290])])
pairs = f.PairCounts(similar=20, dissimilar=10)
totals = f.Totals(patients=600, pairs=pairs, sites=2)
evaluation = s.EvaluationCounts(rule="distance", neighbours=5, confusion=s.Confusion(
    rows=[s.ConfusionRow(counts=[40, 10]), s.ConfusionRow(counts=[11, 39])]), scores=s.ScoreBins(
    rows=[s.ConfusionRow(counts=[30, 20]), s.ConfusionRow(counts=[10, 40])]), rounded_to=10, loss=17.5,
    area_gains=[2500, 125, 90.5, 6.5, 250000], error_gains=[100, 4, 3.5, 4, 100], figures=s.Figures(
        area=s.Rounded(value=0.75, within=0.125), balanced=s.Rounded(value=0.5, within=0.25)))
withheld = s.EvaluationCounts(rule="inner_product", neighbours=5, rounded_to=1)
second = f.SecondMoments(patients=300, sums=shape(1, 2), products=shape(2, 2))
second_parts = [chunk(0, [0.5, -0.5]), chunk(1, [1, 2, 3, 4])]
split = t.TreeNode(patients=40, split=t.Split(feature=1, missing_left=True, left=1, at_most=54.5))
by_level = t.TreeNode(patients=30, split=t.Split(feature=2, left=3, levels=t.LevelSet(words=[5])))
leaves = [t.TreeNode(patients=n, classes=t.ClassCounts(patients=c))
          for n, c in ((10, [10, 0]), (12, [0, 12]), (18, [0, 18]))]
present = t.TreeNode(patients=25, split=t.Split(feature=0, left=1, present=t.Present()))
hazard = t.TreeNode(patients=15, hazard=t.Hazard(ends=[3, 31], events=[10, 0], exposures=[12.5, 100]))
mean = t.TreeNode(patients=10, mean=-1.5)
trees, nodes = t.Trees(features=3, nodes=[5, 3]), f.Part(nodes=t.NodesChunk(
    nodes=[split, leaves[0], by_level, leaves[1], leaves[2], present, hazard, mean]))
edges = f.Part(edges=t.EdgesChunk(edges=[t.Edges(values=[54.5, 60]), t.Edges()]))
errors = [s.RuleErrors(rule="forest", measure=1, sums=s.ErrorSums(total=300, error=60)),
          s.RuleErrors(rule="gap", neighbours=5, measure=3)]
judged_families = [
    v.JudgedFamily(
        counts=s.EvaluationCounts(rule="euclidean", neighbours=5, rounded_to=10, confusion=s.Confusion(
            rows=[s.ConfusionRow(counts=[40, 10]), s.ConfusionRow(counts=[20, 30])])),
        errors=s.RuleErrors(rule="euclidean", neighbours=5, measure=1, sums=s.ErrorSums(total=100, error=20))),
    v.JudgedFamily(
        counts=s.EvaluationCounts(rule="cosine", neighbours=5, rounded_to=10),
        errors=s.RuleErrors(rule="cosine", neighbours=5, measure=1)),
    v.JudgedFamily(
        counts=s.EvaluationCounts(rule="gower", neighbours=5, rounded_to=10, error_gains=[90, -1.5, 4, -1.5, 90]),
        errors=s.RuleErrors(rule="gower", neighbours=5, measure=2, sums=s.ErrorSums(total=90, error=12.5)))]
failed = o.Ending(failed=f.Failure(code="KDR-SITES", text="too few sites: wanted 3"))



def site(message, *parts):
    return [f.ToSiteFrame(message=message), *(f.ToSiteFrame(part=part) for part in parts)]


def ask(parts=(), **request):
    return site(f.ToSite(ask=f.Ask(run=run, exchange=3, **request)), *parts)


def ask_unpsl(parts=(), **request):
    return ask(parts, unpsl=u.UnpslRequest(**request))


def ask_forest(parts=(), **request):
    return ask(parts, forest=t.ForestRequest(**request))


def ask_regression(**request):
    return ask(regression=r.RegressionRequest(**request))


def ask_card(**request):
    return ask(card=k.CardRequest(**request))


def ask_neighbours(**request):
    return ask(neighbours=n.NeighboursRequest(**request))


def reply(parts=(), journal=None, **answer):
    message = f.ToCoordinator(reply=f.Reply(run=run, exchange=3, answer=f.Answer(**answer), journal=journal))
    return [f.ToCoordinatorFrame(message=message), *(f.ToCoordinatorFrame(part=p) for p in parts)]


def ask_cluster(parts=(), **request):
    return ask(parts, cluster=c.ClusterRequest(**request))


def result(ending, parts=(), times=o.Times(), pooled=s.PooledFigures(), **left):
    message = o.RunResult(
        run=run, job="name", seed=1, version="0.1.0", ending=ending, times=times, seconds=1.5, pooled=pooled, **left)
    return [o.ResultFrame(message=message), *(o.ResultFrame(part=part) for part in parts)]


def row(name):
    return s.SiteResult(name=name, bytes_sent=1000, bytes_received=2000,
                        messages=[s.MessageTotal(kind="moments", count=1, bytes=700)])


finished = s.Assessment(objective=0.5, evaluation=[evaluation, withheld], validation=[evaluation])
judged = s.Assessment(evaluation=[evaluation], errors=errors, importance=shape(1, 2))
importance = [0.125, 0.5]
sites = f.Part(sites=s.SitesChunk(sites=[
    row("north"), row("east"), row("south"), row("west")]))
metric = u.UnpslModel(
    objective=0.5, metric=shape(1, 2), rounds=1, features=1, dropped=1, certificate=0.125, folds=5, judges=3,
    selection=[u.SelectionRow(
        form=2, lambda_sparsity=0.01, rank=4, neighbours=5, right=250, wrong=50, log_loss=0.375, chosen=True)])
metric_parts = [
    chunk(0, [0.1, 0.2]),
    f.Part(rounds=u.RoundsChunk(rounds=[u.RoundRow(
        round=1, primal_residual=0.5, dual_residual=0.25, penalty=1, left=0.5, residual=0.25, seconds=0.125,
        metric_norm=1.5, dual_norm=0.75)])),
    f.Part(features=u.FeaturesChunk(features=[u.FeatureResult(name="cp=4", mean=0.5, scale=2, missing_share=0.0625)])),
    f.Part(dropped=u.DroppedChunk(names=["fbs=1"]))]
point = r.RegressionPoint(rows=[0, 2], at=[0.5, -0.25])
step = r.HazardStep(until=500, hazard=0.0625, low=0.25, high=0.75)
common = r.CommonBaseline(steps=[step], coefficients=[0.5, -0.25], references=[53.5, 0], covariance=[0.5, 0.25, 0.25, 0.75],
    sureness=[r.HazardSureness(low=0.375, high=0.5, variance=0.125, **{"with": [0, -0.5]})])
weighing = r.RegressionPoint(weights=[0.375, -0.125], common=common, **{field.name: value for field, value in point.ListFields()})
of_regression = dict(
    patients=600, events=120, log_likelihood=-700.5, null_log_likelihood=-750.25, aic=1405, coefficients=[
        r.RegressionCoefficient(name="age", value=0.5, step=9, reference=53.5, weight=0.375, sureness=r.Sureness(standard_error=0.25, low=0.125, high=0.875, p=0.0625)),
        r.RegressionCoefficient(name="fbs=1", step=1)],
    features=[r.RegressionTest(feature="age", chi_squared=4, degrees=1, p=0.0625)], remarks=["fbs=1 is constant"],
    converged=True, steps=4, evaluations=5, evaluations_max=14,
    proportionality=[r.RegressionTest(chi_squared=1.5, degrees=1, p=0.25)],
    splines=[r.RegressionSpline(feature="age", knots=[40, 55, 70.5])],
    imputed=[r.ImputedValue(number=54.5), r.ImputedValue(level=2)], selection=r.RegressionSelection(
        wald_p=0.0625, removed=[r.RemovedFeature(feature="cp", degrees=3, value=0.75)], fits=2, stopped=1))
common_baseline = r.RegressionModel(family=5, cells=2, baseline=[step], **of_regression)
few = n.Alike(patients=12.5, border=0.75, classes=[-1, 13.5], class_variances=[0.5, 0.5], sums=[250.5], sum_variances=[16])
many = n.Alike(patients=340, border=0, classes=[40, 300], class_variances=[2, 2], sums=[-0.5], sum_variances=[32])
fared = [many, few]
dividing = c.Dividing(samples=[0, 3], clusters=[2, 2], centres=shape(4, 1))
marks = [c.ClusterMark(sites=4, patients=[340, 0], sums=[54.5, 0], squares=[100, 0]),
         c.ClusterMark(sites=1, patients=[0, 340], sums=[0, 54.5], squares=[0, 100])]
golden = {
    "begin": site(f.ToSite(begin=f.Begin(run=run, opening=run, job='name = "heart-disease"\n', seed=2**63, warrant=f.Warrant(
        token="monday", chain=[b"\x30\x00", b"\x30\x01\x02"], scheme=0x0403, signature=b"\x07\x08\x09")))),
    "closed": site(f.ToSite(closed=f.Closed(
        run=run, exchange=4, at=1_700_000_000_000, blocks=1, total_words=1, total_tag=b"\x09" + bytes(15), sites=[
            f.ClosedSite(answer=len(digest), signature=b"\x08" * 64),
            f.ClosedSite()])),
        block(digest + (5).to_bytes(8, "little") + (6).to_bytes(8, "little") + b"\x01\x02")),
    "introduce": ask(introduce=f.Introduce()),
    "encapsulate": ask(encapsulate=f.Encapsulate()),
    "describe": ask(describe=f.Describe()),
    "moments": ask(moments=f.AskMoments()),
    "spread": ask([columns], spread=f.Prepare(columns=2, totals=totals)),
    "prepare": ask([columns], prepare=f.Prepare(columns=2, totals=totals)),
    "prepare_with_quartiles": ask([chunk(0, [1, 2, 4]), chunk(1, [0.5, 1]), columns],
                                  prepare=f.Prepare(columns=2, totals=totals, quartiles=shape(1, 3), within=shape(1, 2), curves=[
                                      f.SplineCurve(knots=[40, 55, 70.5], means=[12.5], deviations=[8.25])])),
    "correlate": ask(second_parts, correlate=f.Correlate(second_moments=second)),
    "end": site(f.ToSite(end=f.End(run=run, ending="converged"))),
    "round": ask_unpsl([chunk(0, [1, 2, 3, 4, 5, 6]), chunk(1, [-1, -2, -3, -4, -5, -6])],
                       round=u.Round(consensus=shape(3, 2), centre=shape(3, 2), penalty=1.5, tolerance=1e-6, form=1)),
    "fold": ask_unpsl([chunk(0, [1]), chunk(1, [-1])], round=u.Round(
        consensus=shape(1, 1), centre=shape(1, 1), penalty=1.5, tolerance=1e-3, fold=0, form=2)),
    "certificate": ask_unpsl([chunk(0, [1])], round=u.Round(
        consensus=shape(1, 1), penalty=2, tolerance=1e-9, form=1)),
    "dual": ask_unpsl([chunk(0, [1])], round=u.Round(
        consensus=shape(1, 1), penalty=2, tolerance=1e-9, form=1, dual=u.DualStep(moves=3, before=2.5, after=0.5))),
    "differentiate": ask_unpsl([chunk(0, [0.5, -0.5]), chunk(1, [0.25, -0.25])], differentiate=u.Differentiate(
        questions=[u.MetricQuestion(metric=shape(2, 1), form=1), u.MetricQuestion(metric=shape(2, 1), fold=0, form=2)])),
    "differentiate_rows": ask_unpsl([chunk(0, [0.5, -0.5]), chunk(1, [0, 0])], differentiate=u.Differentiate(
        questions=[u.MetricQuestion(metric=shape(2, 1), rows=u.ActiveRows(rows=[0, 300]), form=1),
                   u.MetricQuestion(metric=shape(2, 1), rows=u.ActiveRows(), form=1)])),
    "validate": ask_unpsl([chunk(0, [0.5, -0.5]), chunk(1, [0.25, -0.25])],
                          validate=u.Validate(models=[shape(2, 1), shape(2, 1)], folds=2, neighbours=[1, 5])),
    "finish": ask_unpsl([chunk(0, [0.1, 0.2])], finish=u.Finish(consensus=shape(1, 2), neighbours=5, form=2)),
    "finish_folds": ask_unpsl([chunk(0, [0.1, 0.2]), chunk(1, [0.5, 0.25]), chunk(2, [1, 2])], finish=u.Finish(
        consensus=shape(1, 2), neighbours=5, form=2, folds=[shape(1, 2), shape(1, 2)], judges=3)),
    "grow_own": ask_forest(grow_own=t.GrowOwn()),
    "grow": ask_forest([edges], grow=t.Grow(trees=167, edges=2, event_times=[1, 2.5], class_weights=[1, 1])),
    "judge": ask_forest([nodes], judge=t.Judge(first_tree=1, trees=trees)),
    "evaluate": ask_regression(evaluate=point),
    "evaluate_cells": ask_regression(evaluate=r.RegressionPoint(rows=[0, 2], at=[-7.5, -8, 0.5, -0.25], cells=[0, 3])),
    "test": ask_regression(test=point),
    "finish_regression": ask_regression(finish=point),
    "finish_weighing": ask_regression(finish=weighing),
    "judge_folds": ask([chunk(0, [0.5, 1]), chunk(1, [0.25, 0])], compare=v.CompareRequest(judge=v.JudgeFolds(
        judges=3, metrics=[shape(2, 1), shape(2, 1)],
        regressions=[r.RegressionPoint(rows=[0, 2], at=[0.5, -0.25, 1], fold=1)]))),
    "judge_folds_in_common": ask([chunk(0, [0.5, 1]), chunk(1, [0.25, 0]), nodes], compare=v.CompareRequest(judge=v.JudgeFolds(
        judges=3, metrics=[shape(2, 1), shape(2, 1)], forest=t.Judge(first_tree=1, trees=trees),
        regressions=[r.RegressionPoint(rows=[0, 2], at=[0.5, -0.25, 1], fold=1)]))),
    "part_card": ask_card(part=k.PartCard()),
    "compare_card": ask_card(compare=k.CompareCard(left_out=[1, 300])),
    "count_card": ask_card(count=k.CountCard(left_out=[1, 300])),
    "histograms_card": ask_card(histograms=k.HistogramsCard(outcome=1, columns=[0, 2, 300], left_out=[1, 300])),
    "sum_card": ask_card(sum=k.SumCard(places=[0, 2, 300], left_out=[1, 300])),
    "measure": ask_neighbours(measure=n.MeasureDistances()),
    "count_alike": ask_neighbours(count=n.CountAlike(radii=[0.5, 1.25])),
    "measure_spread": ask_cluster(measure=c.MeasureSpread()),
    "step": ask_cluster([chunk(0, [0.5, 1.5, 0.25, -1])], step=dividing),
    "compare": ask_cluster([chunk(0, [0.5, 1.5, 0.25, -1])], compare=dividing),
    "mark": ask_cluster([chunk(0, [0.5, 1.5])], mark=c.Marking(centres=shape(2, 1), fared=fared)),
    "hello": [f.ToCoordinatorFrame(message=f.ToCoordinator(hello=f.Hello(version="0.1.0")))],
    "introduced": reply(introduced=f.Introduction(patients_at_most=120, 
        agreement=b"\x01" * 32, signing=b"\x02" * 32, encapsulation=b"\x03" * 1184, chain=[b"\x30\x00"], scheme=0x0403,
        signature=b"\x07\x08\x09")),
    "encapsulated": reply(encapsulated=f.Encapsulations(ciphertexts=[b"", b"\x04" * 1088], common=[b"", b"\x05" * 32])),
    "covered": reply([block(b"\x01" + bytes(14) + b"\x80" + b"\xff" * 16)], covered=f.Covered(
        kind="moments", words=2, blocks=1, tag=b"\x07" + bytes(15))),
    "unfit": reply(unfit=f.Unfit(problems=[f.Problem(column="chol", found="mmol/l", wanted="mg/dl")])),
    "refused": reply(refused=f.Refusal(rule="patients_min", text="too few")),
    "failed": reply(failed=f.Failure(code="KDR-RESULTS", text="the disk is full")),
    "prepared_without": reply(prepared=f.Prepared()),
    "correlated": reply(correlated=f.Correlated()),
    "journal": reply(correlated=f.Correlated(), journal=f.JournalHead(entries=7, hash="0123456789abcdef" * 4)),
    "grown": reply([nodes], trees=trees),
    "progress": [o.Progress(run=run, job="heart-disease", method="unpsl", phase="rounds", sites_connected=2, sites=3,
                            waiting_for=["west"], away=["west"], waiting_since=1_700_000_000_000, ending=failed, ahead=2, notes=2,
                            times=o.Times(submitted=1_700_000_000_000, began=1_700_000_000_250), course=o.Course(
                                round=4, round_limit=100, objective=0.5, left=0.125, primal_residual=0.25))],
    "result": result(o.Ending(cancelled=o.Cancelled()),
                     [chunk(0, importance), sites,
                      f.Part(notes=f.NotesChunk(notes=["south came late"]))],
                     operator="lab", sites=4, notes=1,
                     times=o.Times(submitted=1_700_000_000_000, began=1_700_000_000_250, ended=1_700_000_001_750),
                     pooled=s.PooledFigures(patients=1_200, classes=[700, 500], missing=[s.MissingShare(feature="chol", share=0.25)],
                                            heard="06", totals=2, assessment=judged)),
    "metric": result(o.Ending(converged=o.Converged()), metric_parts, unpsl=metric),
    "forest": result(o.Ending(completed=o.Completed()), [nodes], forest=t.ForestModel(
        forest=t.CommonForest(trees=trees, class_weights=[1, 2]), trees=[1, 1])),
    "regression": result(o.Ending(completed=o.Completed()), regression=r.RegressionModel(family=3, **of_regression)),
    "regression_common": result(o.Ending(completed=o.Completed()), regression=common_baseline),
    "neighbours": result(o.Ending(completed=o.Completed()), neighbours=n.NeighboursModel(
        run=run, patients=690, grouped=682, radii=[0.5, 1.25], everybody=many, alike=[few, many], feature_patients=[12.5, 0],
        feature_sums=[100.25, 0])),
    "cluster": result(o.Ending(completed=o.Completed()), [chunk(0, [0.5, 1.5])], cluster=c.ClusterModel(
        run=run, patients=690, grouped=682, steps=9, unsettled=1, tried=[
            c.TriedClusters(bias=0.75, stability=[0.875, 0.625], fared=fared, stable=True),
            c.TriedClusters(stability=[0.5, 0.25], fared=fared)], shown=0, centres=shape(2, 1), marks=marks)),
    "compared": result(o.Ending(completed=o.Completed()), compare=v.CompareModel(
        patients=690, neighbours=5, folds=4,
        families=[v.ComparedFamily(counts=one, sites=3) for one in judged_families],
        left_out=[v.LeftOutFamily(family="unpsl", reason="the metric of a fold is empty")])),
    "card": result(o.Ending(completed=o.Completed()), card=k.CardModel(
        groups=[card_group, card_group], steps=[10, 10], outcomes=[
            k.CardOutcome(classes=k.CardClasses()), k.CardOutcome(number=k.CardMoments(mean=-1.5, deviation=2.25)),
            k.CardOutcome(time=1_250.5)], left_out=10)),
    "card_without": result(o.Ending(completed=o.Completed()), card=k.CardModel()),
    "forest_without": result(o.Ending(completed=o.Completed()), forest=t.ForestModel()),
}
for name, frames in golden.items():
    lines = [frame.SerializeToString(deterministic=True).hex() for frame in frames]
    (HERE / f"{name}.hex").write_text("\n".join(lines) + "\n")
(HERE / "versions.txt").write_text(
    f"python {sys.version.split()[0]}\n" + "".join(f"{p} {version(p)}\n" for p in ("grpcio-tools", "protobuf")))
