#pragma D option nspec=5
BEGIN
