# SPDX-License-Identifier: Apache-2.0
"""The cells behind golden/*.json: one per row of the chart rules, named by what it shows.

Each cell draws one figure and shows it. Names with a leading section number sort like the contract.
"""

HEAD = """\
import datetime, numpy as np, matplotlib.pyplot as plt
"""

CASES: dict[str, str] = {
    # -- worked examples
    "example_line": """\
plt.plot([1, 2, 3], [4, 5, 6])
plt.title("T"); plt.xlabel("Time (s)"); plt.ylabel("Speed [m/s]")
plt.show()""",
    "example_dates": """\
plt.plot([datetime.datetime(2024, 1, 1, 12, 30), datetime.datetime(2024, 1, 2)], [1, 2])
plt.show()""",
    "example_categorical": """\
plt.plot([1, 2, 3, 4, 5], ["A", "B", "C", "D", "E"])
plt.show()""",
    "example_log": """\
plt.plot([1, 2, 3], [10, 100, 1000])
plt.yscale("log"); plt.ylabel("Y-axis (log scale)")
plt.show()""",
    "example_bar": """\
plt.bar(["A", "B", "C"], [10, 20.5, 30]); plt.ylabel("N (k)")
plt.show()""",
    "example_bar_horizontal": """\
plt.barh(["A", "B", "C"], [10, 20.5, 30]); plt.xlabel("Count"); plt.ylabel("Cat")
plt.show()""",
    "example_bar_grouped": """\
x = np.arange(3)
plt.bar(x - 0.2, [1, 2, 3], 0.4, label="g1"); plt.bar(x + 0.2, [4, 5, 6], 0.4, label="g2")
plt.xticks(x, ["A", "B", "C"]); plt.legend()
plt.show()""",
    "example_pie": """\
plt.pie([90, 10], labels=["No", "No, in blue"], startangle=90); plt.title("W")
plt.show()""",
    "example_box": """\
data = [[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87], [75, 82, 88, 79, 86]]
plt.boxplot(data, patch_artist=True)
plt.xticks([1, 2, 3], ["Class A", "Class B", "Class C"])
plt.title("Exam Scores Distribution"); plt.xlabel("Class"); plt.ylabel("Score")
plt.show()""",
    "example_scatter": """\
plt.scatter([1, 2], [3, 4]); plt.title("S")
plt.show()""",
    "example_scatter_colorbar": """\
plt.colorbar(plt.scatter([1, 2], [3, 4], c=[0, 1]))
plt.show()""",
    "example_circles": """\
fig, ax = plt.subplots()
ax.add_artist(plt.Circle((0, 0), 1)); ax.add_artist(plt.Circle((0, 0), 2, fill=False))
ax.set_title("Two Concentric Circles")
plt.show()""",
    # -- common fields
    "units_first_match": """\
plt.plot([1, 2, 3]); plt.xlabel("Length (cm) (x)"); plt.ylabel("A(b)")
plt.show()""",
    "title_only_centre_counts": """\
plt.plot([1, 2, 3]); plt.title("left", loc="left")
plt.show()""",
    "ticks_removed": """\
plt.plot([1, 2, 3]); plt.xticks([]); plt.yticks([])
plt.show()""",
    "ticks_custom_integers": """\
plt.plot([1, 2, 3]); plt.xticks([0, 1, 2])
plt.show()""",
    "ticks_named_from_zero_are_categorical": """\
plt.plot([5, 6, 7]); plt.xticks([0, 1, 2], ["a", "b", "c"])
plt.show()""",
    "scale_symlog": """\
plt.plot([-100, 1, 100]); plt.yscale("symlog")
plt.show()""",
    "negative_ticks_have_a_real_minus": """\
plt.plot([-2, 0, 2], [-2, 0, 2])
plt.show()""",
    # -- line
    "line_labels": """\
plt.plot([1, 2, 3], label="named"); plt.plot([3, 2, 1]); plt.plot([2, 2, 3], label="_hidden")
plt.show()""",
    "line_without_guides": """\
plt.plot([1, 2, 3]); plt.axhline(2); plt.axvline(1); plt.grid()
plt.show()""",
    "line_missing_values": """\
plt.plot([1, 2, 3, 4], [1.5, float("nan"), np.inf, 2]); plt.plot(np.ma.masked_greater([1, 5, 2], 4))
plt.show()""",
    "line_value_types": """\
plt.plot([datetime.date(2024, 1, 1), datetime.date(2024, 1, 3)], [True, False])
plt.show()""",
    "line_datetime64": """\
plt.plot(np.array(["2024-01-01T00:00:00.5", "2024-01-02", "2024-01-04"], dtype="datetime64[ms]"), [1, 2, 4])
plt.show()""",
    "line_aware_datetimes": """\
zone = datetime.timezone(datetime.timedelta(hours=2))
plt.plot([datetime.datetime(2024, 1, 1, 12, tzinfo=zone), datetime.datetime(2024, 1, 2, 0, 0, 0, 250000, tzinfo=zone)],
         [1, 2])
plt.show()""",
    "line_pandas_dates": """\
import pandas as pd
pd.Series([1.0, 3.0, 2.0], index=pd.date_range("2024-01-01", periods=3, freq="D"), name="s").plot()
plt.show()""",
    "line_pandas_months": """\
import pandas as pd
pd.DataFrame({"a": [1, 2, 3, 4]}, index=pd.period_range("2024-01", periods=4, freq="M")).plot()
plt.show()""",
    "line_pandas_timestamps_unordered": """\
import pandas as pd
plt.plot(pd.to_datetime(["2024-01-01", "2024-01-05", "2024-01-07"]), [1, 2, 3])
plt.show()""",
    "line_polar": """\
plt.polar([0, 1.5, 3], [1, 2, 3])
plt.show()""",
    "line_empty_subplot_beside": """\
fig, (a, b) = plt.subplots(1, 2); a.plot([1, 2, 4]); fig.suptitle("Both")
plt.show()""",
    # -- scatter
    "scatter_two_sets": """\
plt.scatter([1, 2, 3], [4, 5, 6], label="A"); plt.scatter([3, 2], [1, 0], label="B"); plt.axhline(3)
plt.show()""",
    "scatter_categories": """\
plt.scatter(["x", "y", "x"], [1, 2, 3])
plt.show()""",
    "scatter_dates": """\
plt.scatter([datetime.datetime(2024, 1, 1, 6), datetime.datetime(2024, 1, 3)], [1, 2])
plt.show()""",
    "scatter_missing_values": """\
plt.scatter([1, float("nan"), 3], [1, 2, 3])
plt.show()""",
    "scatter_with_a_stand_in_for_the_legend": """\
plt.scatter([1, 2], [3, 4], label="A"); plt.plot([], [], "o", label="B"); plt.legend()
plt.show()""",
    # -- bar
    "bar_single": """\
plt.bar(["only"], [7])
plt.show()""",
    "bar_all_equal": """\
plt.bar(["a", "b"], [5, 5]); plt.xlabel("X"); plt.ylabel("Y")
plt.show()""",
    "bar_horizontal_all_equal": """\
plt.barh(["a", "b"], [5, 5]); plt.xlabel("X (u)"); plt.ylabel("Y")
plt.show()""",
    "bar_stacked": """\
plt.bar(["a", "b"], [1, 2], label="low"); plt.bar(["a", "b"], [3.25, 4], bottom=[1, 2], label="high")
plt.show()""",
    "bar_with_errors": """\
plt.bar(["a", "b"], [1, 2], yerr=[0.1, 0.2], capsize=3)
plt.show()""",
    "bar_numeric": """\
plt.bar([2010, 2015, 2021], [1.5, 2.5, 3.5])
plt.show()""",
    "bar_dates": """\
plt.bar([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), datetime.date(2024, 1, 5)], [1, 2, 3])
plt.show()""",
    "bar_negative_and_large": """\
plt.bar(["a", "b", "c"], [-3, 123456789.125, 0])
plt.show()""",
    "bar_with_labels_and_threshold": """\
plt.bar_label(plt.bar(["a", "b"], [1, 2])); plt.axhline(1.5)
plt.show()""",
    "bar_pandas": """\
import pandas as pd
pd.DataFrame({"u": [1, 2], "v": [3, 4]}, index=["p", "q"]).plot.bar()
plt.show()""",
    "bar_pandas_horizontal": """\
import pandas as pd
pd.Series([1, 2], index=["p", "q"], name="u").plot.barh(xlabel="n")
plt.show()""",
    "histogram": """\
plt.hist([1, 1, 2, 3, 3, 3, 4], bins=[0.5, 1.5, 2.5, 3.5, 4.5])
plt.show()""",
    "rectangles_without_container": """\
plt.gca().add_patch(plt.Rectangle((0, 0), 1, 1))
plt.show()""",
    # -- pie
    "pie_thirds_without_labels": """\
plt.pie([1, 1, 1], radius=2)
plt.show()""",
    "pie_shadow": """\
plt.pie([3, 1], labels=["a", "b"], shadow=True, autopct="%d%%", explode=[0, 0.1])
plt.show()""",
    # -- box
    "box_unfilled": """\
plt.boxplot([[1, 2, 3, 4, 5], [2, 4, 6, 8, 30]]); plt.xticks([1, 2], ["p", "q"])
plt.show()""",
    "box_single": """\
plt.boxplot([1, 2, 3, 4, 50], patch_artist=True)
plt.show()""",
    "box_equal_heights": """\
plt.boxplot([[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]], patch_artist=True)
plt.show()""",
    "box_zero_whisker": """\
plt.boxplot([[1, 1, 1, 5, 9, 9, 9], [3, 3, 3, 3]], patch_artist=True)
plt.show()""",
    "box_horizontal": """\
plt.boxplot([[1, 2, 3, 4, 5], [2, 4, 6, 8, 30]], patch_artist=True, orientation="horizontal")
plt.yticks([1, 2], ["p", "q"]); plt.xlabel("value (kg)"); plt.ylabel("group")
plt.show()""",
    "box_horizontal_unfilled": """\
plt.boxplot([[1, 2, 3, 4, 5], [2, 4, 6, 8, 30]], orientation="horizontal"); plt.yticks([1, 2], ["p", "q"])
plt.show()""",
    "box_means_and_many_outliers": """\
plt.boxplot([[1, 2, 3, 4, 5, 40, 50, -30]], patch_artist=True, showmeans=True)
plt.show()""",
    "box_meanline_notch_no_caps": """\
plt.boxplot([list(range(1, 30))], notch=True, showmeans=True, meanline=True, showcaps=False, patch_artist=True)
plt.show()""",
    "box_no_fliers": """\
plt.boxplot([[1, 2, 3, 4, 50]], showfliers=False, showmeans=True)
plt.show()""",
    "box_large_values": """\
plt.boxplot([[52345, 1234567, 7654321.25, 9999999.5]], patch_artist=True)
plt.show()""",
    "box_drawn_twice": """\
data = [[85, 90, 78], [95, 89, 76], [75, 82, 88]]
plt.boxplot(data); plt.boxplot(data, patch_artist=True); plt.xticks([1, 2, 3], ["A", "B", "C"])
plt.show()""",
    "box_pandas": """\
import pandas as pd
pd.DataFrame({"u": [1.0, 2.0, 9.0], "v": [2.0, 3.0, 4.0]}).plot.box()
plt.show()""",
    "box_with_a_stand_in_for_the_legend": """\
plt.boxplot([[1, 2, 3, 4, 5]], patch_artist=True); plt.gca().add_patch(plt.Rectangle((0, 0), 0, 0, label="u"))
plt.show()""",
    # -- the rest
    "other_scatter_and_fit": """\
plt.scatter([1, 2, 3], [1, 2, 2]); plt.plot([1, 2, 3], [1, 1.5, 2])
plt.show()""",
    "other_fill_between": """\
plt.plot([1, 2, 4]); plt.fill_between([0, 1, 2], [0, 1, 3], [2, 3, 5])
plt.show()""",
    "other_errorbar": """\
plt.errorbar([1, 2, 3], [1, 2, 3], yerr=0.2)
plt.show()""",
    "other_stem": """\
plt.stem([1, 2, 3])
plt.show()""",
    "other_axvspan": """\
plt.plot([1, 2, 4]); plt.axvspan(0.5, 1)
plt.show()""",
    "other_imshow": """\
plt.imshow(np.eye(3))
plt.show()""",
    "other_violin": """\
plt.violinplot([[1, 2, 3]])
plt.show()""",
    "other_contour": """\
plt.contour(np.outer([1, 2, 3], [1, 2, 3]))
plt.show()""",
    "other_stairs": """\
plt.stairs([1, 2, 3])
plt.show()""",
    "other_three_dimensions": """\
plt.figure().add_subplot(projection="3d").plot([1, 2], [3, 4], [5, 6])
plt.show()""",
    "other_twin_axes": """\
fig, a = plt.subplots(); a.plot([1, 2, 4]); a.twinx().plot([9, 8, 9])
plt.show()""",
    "other_inset": """\
fig, a = plt.subplots(); a.plot([1, 2, 4]); a.inset_axes([0.6, 0.1, 0.3, 0.3]).plot([1, 0, 1])
plt.show()""",
    "other_only_text": """\
plt.text(0.5, 0.5, "hello")
plt.show()""",
    "other_blank_figure": """\
plt.figure()
plt.show()""",
    "other_blank_subplots": """\
plt.subplots(2, 2)
plt.show()""",
    "other_superchart": """\
fig, (a, b) = plt.subplots(1, 2); fig.suptitle("Multiple Charts Example")
a.plot([0, 1, 2], [0, 1, 0]); a.set_title("Sine Wave")
b.scatter([1, 2], [3, 1]); b.set_title("Scatter Plot"); b.set_xlabel("X"); b.set_ylabel("Y")
plt.show()""",
}
