"""What people look at: pictures of results and models, tables, explanations, pages in notebooks."""
